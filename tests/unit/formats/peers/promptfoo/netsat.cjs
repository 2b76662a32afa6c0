// promptfoo eval -c promptfooconfig.yaml (put your conversations under tests, as vars.conversation)
// pollex 0.1.0, rubrics 77f3ab24ca63, run learn-1, θ 0.5
// The option that the model picks counts; pollex adds up expected values over all options, so figures differ.
// A rubric without an answer voids the sum: it is never counted as 0.
const NAMES = ["sat_10e878080f41", "dsat_20e878080f41"];
// NetSAT: what satisfies less what dissatisfies, 10 points each. An answer that could not be read voids the sum: an
// assertion's score is 0 then, which would be good for a rubric of dissatisfaction.
module.exports = (namedScores, { threshold, componentResults } = {}) => {
  const unread = (one) => one?.score === 0 && /parse|error|could not/i.test(one?.reason ?? '');
  const failed = (componentResults ?? []).filter(unread);
  const missing = NAMES.filter((name) => !Number.isFinite(namedScores[name]));
  if (failed.length || missing.length) {
    return { pass: false, score: 0, reason: `no NetSAT: ${failed.length + missing.length} rubrics without an answer` };
  }
  const netsat = NAMES.reduce((sum, name) => sum + (name.startsWith('sat_') ? 10 : -10) * namedScores[name], 0);
  return { pass: threshold === undefined || netsat > threshold, score: netsat, reason: `NetSAT ${netsat.toFixed(2)}` };
};
