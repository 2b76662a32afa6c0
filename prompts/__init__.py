"""The prompts: one Markdown file each, domain profiles, and escaping of foreign text.

`prompt` reads the files, `profile` the domains, `envelope` seals data, `messages` puts the three
together, and `judging` writes what in a judge's prompt depends on the questions. The room knows no
conversation, rubric or model: it takes plain texts. To add a prompt, add a file; the tests find it.
"""

# under a second name everything in it would exist twice
if not __name__.startswith("pollex."):
    raise ImportError("this folder is the package pollex.prompts: import pollex.prompts")
