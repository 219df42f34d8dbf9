"""An old name of ``annotruth.parallel.threads``, which goes with the next version."""

from annotruth.renamed import old_names

__getattr__ = old_names(
    __name__,
    {name: f"annotruth.parallel.threads.{name}" for name in ("run_parts", "split_range", "thread_count", "threads")},
)
