"""What we ask: one template file per prompt, domain profiles, the loader."""
