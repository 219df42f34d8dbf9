"""``python -m annotruth``: the command line, where the script is not on the path."""

from annotruth.cli import main

if __name__ == "__main__":
    main()
