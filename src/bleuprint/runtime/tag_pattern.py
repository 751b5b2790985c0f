"""The form of a language tag: BCP 47, or as FLORES writes it: language, script, region, variants.

Case matters, so that the tags in a name such as en-zh-Hant can be told apart (pair_name.py).
`text.bcp47` checks that the parts of a tag are known.
"""

_SCRIPT = "[A-Z][a-z]{3}"
_REGION = "[A-Z]{2}|[0-9]{3}"
_VARIANT = "[a-z0-9]{5,8}|[0-9][a-z0-9]{3}"
# A regular expression, for a complete text or a part of one.
LANGUAGE_TAG = f"[a-z]{{2,3}}([-_]{_SCRIPT})?([-_]({_REGION}))?([-_]({_VARIANT}))*"

# The codes in a translation memory, where any case is common.
MEMORY_LANGUAGE_TAG = "^[A-Za-z]{2,3}([-_][A-Za-z0-9]{1,8})*$"
