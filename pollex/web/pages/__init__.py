"""Pages, one module each: what is shown comes from the store, how it looks from templates."""
