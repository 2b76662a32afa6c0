"""The bundled sample log."""
