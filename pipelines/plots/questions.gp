# questions.gp -- tables of accuracy (lib/vision.sh); a script sets what, panels, paper and base, the row with which
# accuracies are compared
bars = "one SE over questions (right answers: of the difference from ".base.")"
rows = "visual language way"; series = "model"; note = "rows: encoder,\nlanguage model, method"
names = "pre=pre-norm encoder;post=post-norm encoder"
load "rows.gp"
