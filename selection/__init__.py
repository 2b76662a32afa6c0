"""Selection of rubrics: losses, policies, threshold and uncertainty window. Arrays only.

Source of the method: Biyani et al. 2024 (RUBICON), sections on selection and on measures. The paper
leaves gaps; these are the choices that fill them. Each is written again where the code makes it.

    loss            `−LC / (10·|R|) + α·LS`, minimised. The paper's `arg max LC + α·LS` can't be
    meant with LS an error.
                    10·|R| is the range that the mean scores of |R| rubrics can span: both terms are
                    unit-free.
    grid            θ takes 101 evenly spaced values from the lowest to the highest score; errors
    are means over them.
    over θ          means by more than a billionth of a grid step, so that rounding never decides;
    else at or under it.
    precision       with no conversation on its side it carries the last defined value; before the
    first, the base rate.
    targets         `b + (1 − b)·(1 + tanh(±(θ − θ_c)/s))/2`: from the base rate b of the curve's
    own class up to 1.
                    s is the pooled standard deviation of the two classes' scores (n − 2 degrees of
                    freedom).
    separation      greedy on LC / s^α, with s of the set so far and covariances shrunk by a fifth:
    the recorded run was
                    made with it, and others' rubrics were never asked there. α in 0.25 … 0.75.
    greedy          the paper's, and the default. All run until both budgets are used, also where
    the next rubric makes
                    the loss worse: the budget is the user's. Losses within 1e-9 are ties, and the
                    smaller id wins.
    prefix          of a model's rubrics beside built-in ones, all labels teaching: as many of an
    order as have the
                    least log-loss on fifths of the conversations that it did not see; none of them
                    where they neither gain two standard errors nor do better than built-in rubrics
                    chosen alone.
    α               the one with the best mean held-out AUC over the folds; the smaller one of
    equals.
    bandit, brute   their reward, "the rubric's summed score", is taken literally: no label enters.
    With labels' signs
                    it would rank as LC does, and the paper's brute force is not its
                    correctness-only.
    window          lower = the highest threshold up to θ with Prec− ≥ P, upper = the lowest from θ
    on with Prec+ ≥ P.
                    A confident score so never contradicts its label; a side that never reaches P is
                    None.
    guarantee       a second window, by exact binomial tests from the strictest threshold inwards,
    on scores by rubrics
                    chosen without the conversation: precision ≥ P on both sides with probability
                    0.9.
    intervals       95 % bootstrap, 2,000 resamples, each class resampled by itself, what goes
    together as one:
                    percentiles drawn out as Student's t is, for the AUC standard errors of its
                    log-odds.

Values are `[conversation, rubric]`, signed so that larger is better; `positive` is the thumb of
each conversation.
"""

if not __name__.startswith("pollex."):
    raise ImportError("this folder is the package pollex.selection: import pollex.selection")
