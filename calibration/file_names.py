"""Names of a calibrator's files; a page needs them without scikit-learn, which takes a second to import."""

JSON_NAME = "calibrator.json"
