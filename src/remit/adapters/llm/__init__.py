"""Any model as an adapter, driven by an agent library."""
