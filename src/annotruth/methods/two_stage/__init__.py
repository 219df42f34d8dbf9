"""Labels fused, voted or averaged first, then a network."""
