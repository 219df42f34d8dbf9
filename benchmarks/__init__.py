"""How fast, how small and how right label fusion is, beside its peers: ``python -m benchmarks``."""
