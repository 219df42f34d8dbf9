"""Who said what about which item: the types that flow through everything."""
