"""The words of the tests of the command line, and the flags that make a run small."""

WORDS = ["good", "fine", "great", "bad", "dull", "poor", "film", "a", "the", "plot", "?"]
POSITIVE, NEGATIVE = WORDS[:3], WORDS[3:6]
SMALL = ["--batch_size=12", "--sequence_length=16", "--learning_rate=0.01"]
SPLIT = "--validation_split=0.2"
