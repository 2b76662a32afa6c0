"""Calibration: from a judge's answer distributions to people's answers. Arrays only.

Source of the method: Hashemi et al. 2024 (LLM-Rubric), doi:10.18653/v1/2024.acl-long.745. The
estimators are one file each in `models/`; all are scikit-learn's in their ways, and share what
`estimator.py` holds:

    X           probabilities `[row, question × option]`, a row a text; as the judge gave them, not
    renormalised.
                A block of NaN: the question was not asked or not answered. A block of zeros: it
                does not apply.
    judgments   what people said: any irregular collection of (row, question, judge, answer).
    judges      people. One who was not there in training gets the shared part of a model alone.
    main        the question that everything is for: the overall one, or the thumb.
"""

CALIBRATOR_FILE_NAME = "calibrator.json"
"""The file of a fitted calibrator."""

if not __name__.startswith("pollex."):
    raise ImportError("this folder is the package pollex.calibration: import pollex.calibration")
