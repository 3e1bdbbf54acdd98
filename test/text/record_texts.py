"""The texts whose ids are recorded from llama.cpp (record_smollm2.py, record_small.py)."""
import random

PLAIN = [
    "", " ", "  ", "   ", "\n", "\n\n", "\t", "\r\n", " \n ", "a", " a", "a ", " a ", "Hello, world!", "hello world",
    "The quick brown fox jumps over the lazy dog.", "I'll say it's what we've done, they're sure I'd be.",
    "I'LL SHOUT: IT'S DON'T", "\u2019s a curly apostrophe isn\u2019t", "''' 'll 's's 'x '", "1", "12", "123", "1234567890",
    "3.14159", "-1e-10", "10,000,000", "a1b2c3", "1st 2nd 3rd", " 1", "  1", "   12", "1 ", "1  ", "x 1", "x  1 ", "1\n2",
    "1 a", "1  a", "a  1a", "\u0661\u0662\u0663", "\u00bd cup", "x\u00b2 + y\u00b3", "\u2163 \u2160", "\u4e00\u4e8c\u4e09",
    "f(x) = x**2 + 1;", "for (int i = 0; i < n; ++i) { sum += a[i]; }", "def f(x):\n    return x + 1\n\n\nclass A:\n\tpass\n",
    "    four spaces", "\t\ttabs", "a    b", "a     b\n\n\n   c", "trailing   ", "trailing\n\n", "   \n\n  x", "x\n \n \ny",
    "https://example.org/path?q=1&r=%20#frag", "user@example.org", "C:\\Users\\name\\file.txt", "{\"key\": [1, 2, null, true]}",
    "<html><body class=\"x\">text</body></html>", "$x^2 + \\frac{a}{b} \\le 5$", "!!! ??? ... --- ***", "(((())))", "=" * 40, "-" * 81,
    "caf\u00e9 na\u00efve r\u00e9sum\u00e9", "cafe\u0301", "\u00dcber stra\u00dfe gr\u00f6\u00dfe", "\u0141\u00f3d\u017a ca\u0142a",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440!", "\u0393\u03b5\u03b9\u03ac \u03c3\u03bf\u03c5 \u03ba\u03cc\u03c3\u03bc\u03b5",
    "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645",
    "\u4f60\u597d\uff0c\u4e16\u754c\u3002", "\u3053\u3093\u306b\u3061\u306f\u4e16\u754c", "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "Xin ch\u00e0o th\u1ebf gi\u1edbi", "\U0001f600", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 family",
    "\U0001f1e9\U0001f1ea flag", "a\U0001f600b\U0001f680 c", "\u2764\ufe0f", "\u00a0", "a\u00a0b", "a\u3000b", "\u2003em space",
    "a\u0085b", "a\u2028b\u2029c", "\u200bzero width", "\ufeffbom", "\u180e", "a\u180eb", "\u001ca", "\u0000", "a\u0000b",
    "\u0001\u0002\u0003\u0004\u0005", "\u007f", "\ufffd", "\uffff", "\U0010ffff", "\U000e0041", "\u0130stanbul \u0131", "\u017f's",
    "\ufb01 ligature", "\uff21\uff22\uff23 \uff11\uff12", "\u2460\u2461", "\u0bf0", "\u3021\u3022",
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "text <|im_start|>user\nhi<|im_end|> text", "<|im_start", "<|im_end|>>", "<<|im_end|>",
    "<repo_name>", "<file_sep>x<filename>", "<|im_start|><|im_end|>", " <|im_end|> ", "a<|im_end|>1 ", "1<|im_end|> 1",
    "What is the capital of France?", "Once upon a time", "Explain gravity in one sentence.", "Write a haiku about rivers.",
    "supercalifragilisticexpialidocious", "Donaudampfschifffahrtsgesellschaftskapit\u00e4n", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "abababababababababab", "AbCdEfGhIjKl", "snake_case_name camelCaseName PascalCaseName SCREAMING_CASE", "x" * 200, " " * 100, "\n" * 50,
    "word " * 50, "9" * 64, "\u5b57" * 40, "^" * 70, "!?" * 33,
]

WORDS = ("the of and to in is it you that he was for on are with as his they at be this have from or had by hot but some what there "
         "can out other were all your when up use how said an each she which do their time if will way about many then them would "
         "tokenizer quipu llama knots cords account exact matrix vector float32 GPU's isn't we'll 2024 3.5 $100 50% #1 e.g. (see) "
         "\u00e9t\u00e9 \u043c\u0438\u0440 \u6c34 \U0001f642 na\u00efve \u03c0\u22483.14").split()
SPACES = [" ", " ", " ", " ", " ", "  ", "\n", "\n\n", "\t", ", ", ". ", " - ", "\r\n"]
ALPHABET = list("aB1 \n\t'sStTdD.,;<>|_=\"") + list("\u00e9\u00df\u0416\u5b57\u3000\u0085\u00a0\u2028\u0663\u00b2\u0301\u200d\U0001f600\ufffd\u0000")


def texts():
    yield from PLAIN
    rng = random.Random(20240711)
    for _ in range(80):
        yield "".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(rng.randint(3, 30)))
    for _ in range(120):
        yield "".join(rng.choice(ALPHABET) for _ in range(rng.randint(1, 24)))
    for _ in range(40):
        yield "".join(chr(rng.choice([rng.randint(0, 0x7F), rng.randint(0x80, 0xD7FF), rng.randint(0xE000, 0x1FFFF)]))
                      for _ in range(rng.randint(1, 16)))
