"""Pages, one module each: content from the store, form from templates."""
