"""Every file that comes in or goes out, one module a format."""
