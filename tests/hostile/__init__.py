"""Bad inputs of every kind, each given to a verb in a process of its own with little memory and time.

attacks.py    what an attack is
folders.py    case folders: files of every format, names, dataset.json
tables.py     label tables and feature files
models.py     models, runs, checkpoints and plans
exports.py    exports that ``import`` takes: damaged files of every source, archives
xml_exports.py, json_exports.py  the same with something bad inside
stores.py     databases, and Parquet files with pictures
names.py      the same with names that might do harm; tables of answers
words.py      options of the command line
running.py    runs an attack, and judges how it ended
__main__.py   ``python -m tests.hostile``: all of them, or a part; ``--write`` keeps the counts
"""
