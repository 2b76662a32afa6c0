"""pollex learns the rubrics behind your users' thumbs."""
