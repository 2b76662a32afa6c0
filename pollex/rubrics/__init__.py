"""What is learned and how it scores: questions, answers, rubrics, rubric sets, NetSAT."""
