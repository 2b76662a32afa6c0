"""What `pollex judge` does around its graph."""
