"""The bundled sample logs."""
