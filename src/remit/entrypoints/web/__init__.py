"""The pages: rendered here, readable without scripts, kept current by a few small modules."""
