"""How logs are written: the general shapes, and the exports of tools."""
