// promptfoo eval -c promptfooconfig.yaml (put your conversations under tests, as vars.conversation)
// pollex 0.1.0, rubrics 77f3ab24ca63, run learn-1, θ 0.5
// How far thumbs bear rubrics out: unknown: sat_10e878080f41, dsat_20e878080f41.
// The option that the model picks counts; pollex adds up expected values over all options, so figures differ.
// A rubric without an answer voids the sum: it is never counted as 0.
const NAMES = ["sat_10e878080f41", "dsat_20e878080f41"];
// NetSAT: what satisfies less what dissatisfies, 10 points each. An answer that could not be read voids the sum: an
// assertion's score is 0 then, which would be good for a rubric of dissatisfaction. The mean is without void sums.
module.exports = (namedScores, { threshold, componentResults } = {}) => {
  const unread = (componentResults ?? []).filter((one) => one?.metadata?.graderError);
  const failed = new Set(unread.map((one) => one.assertion?.metric));
  const known = Object.entries(namedScores).filter(([name, score]) => Number.isFinite(score) && !failed.has(name));
  const read = Object.fromEntries(known);
  const without = failed.has(undefined) ? NAMES : NAMES.filter((name) => !(name in read));
  if (without.length) {
    const reason = `no NetSAT: ${without.length} rubrics without an answer`;
    return { pass: false, score: 0, reason, namedScores: { ...read, pollex_netsat: 0, pollex_scored: 0 } };
  }
  const netsat = NAMES.reduce((sum, name) => sum + (name.startsWith('sat_') ? 10 : -10) * read[name], 0);
  return {
    pass: threshold === undefined || netsat > threshold,
    score: netsat,
    reason: `NetSAT ${netsat.toFixed(2)}`,
    namedScores: { ...read, pollex_netsat: netsat, pollex_scored: 1 },
  };
};
