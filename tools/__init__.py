"""Programs for those who work on annotruth."""
