"""The graphs of the core's commands, and what stages are called for people."""

from pollex.graphs.hooks import RunGraph, StageNames

HOOKS = (
    RunGraph("learn", "pollex.graphs.learn.graph"),
    RunGraph("refit", "pollex.graphs.learn.refit"),
    StageNames(
        {
            "read": "Reading the log",
            "embed": "Embedding turns",
            "turns": "Scoring turn by turn",
            "fit_extractor": "Telling the thumbs apart",
            "extract": "Extracting reasons",
            "summarize": "Writing rubrics",
            "summarize_sat": "Writing what goes well",
            "summarize_dsat": "Writing what goes wrong",
            "describe": "Describing the assistant",
            "deduplicate": "Merging what says the same",
            "reword": "Rewording rubrics",
            "review_pool": "Your look at the pool",
            "gather_sets": "Gathering rubric sets",
            "update": "Updating rubrics",
            "update_sat": "Updating what goes well",
            "update_dsat": "Updating what goes wrong",
            "fit_judge": "Preparing the judge",
            "judge": "Judging",
            "judge the pool": "Judging the pool",
            "judge_pool": "Judging the pool",
            "select": "Selecting rubrics",
            "calibrate": "Calibrating probabilities",
            "judge held-out": "Judging held-out",
            "judge_held_out": "Judging held-out",
            "assess": "Assessing",
            "score": "Scoring",
            "judge_sat": "Judging what goes well",
            "judge_dsat": "Judging what goes wrong",
            "compute_netsat": "Adding up scores",
            "write": "Writing scores",
            "plan_batch": "Planning a batch",
            "commit_batch": "Keeping a batch",
            "finish": "Finishing",
            "probe": "Trying the model",
            "all": "All together",
        }
    ),
)
