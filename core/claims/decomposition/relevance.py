# ruff: noqa: E501  (patterns read better one entry a line)
"""Tell statements about the world from refusals, greetings, questions and talk about the answer itself."""

from __future__ import annotations

import regex

from core.text.abstention import is_abstention
from core.text.folding import folded
from core.text.words import ENGLISH, words

# Every pattern starts where the text does, so that a statement which merely contains such words stays one.
_ENGLISH = r"""
(?:hi|hello|hey|greetings|good\s+(?:morning|afternoon|evening)|welcome|goodbye|bye)(?:\s+(?:there|everyone|again|all))?\W*$
| (?:sure|certainly|of\s+course|absolutely|okay|ok|sorry|great|you'?re\s+welcome)(?:\s+thing)?\W*$
| (?:great|good|excellent|interesting)\s+question\W*$
| (?:i(?:'m|\s+am)\s+(?:very\s+|so\s+)?)?sorry\s+(?:for|about|to\s+hear|that\s+i)\b
| (?:i\s+)?apologi[sz]e\b
| (?:i(?:'d|\s+would|'ll|\s+will|\s+can|\s+am|'m)\s+(?:be\s+)?)(?:(?:very\s+)?(?:happy|glad|here)\s+to|now\s+|try\s+to\s+|do\s+my\s+best|summari[sz]e|explain|answer|list|outline|provide|help|assist)
| (?:glad|happy)\s+to\s+(?:help|assist)
| thank(?:s|\s+you)(?:\s+(?:very|so)\s+much|\s+for\s+(?:your|the|asking|reading)\b[^,;]*)?\W*$
| (?:i\s+)?(?:do\s+)?hope\s+(?:this|that|these|it|you|my)\b.*\b(?:help|helps|helped|helpful|useful|clear|clarif\w+|answer\w*|find|found|enjoy\w*|question)\b
| (?:please\s+)?(?:let\s+me\s+know|feel\s+free|don't\s+hesitate|do\s+not\s+hesitate)\b
| (?:please\s+)?(?:provide|share|give\s+me|tell\s+me|clarify|specify|rephrase)\s+(?:me\s+)?(?:(?:with|more|further|additional|the|your|a|some|any)\s+)*(?:details?|context|information|question|passages?|documents?|text)\b
| if\s+(?:you|there)(?:'d|\s+(?:have|need|want|would|are|is))\s+(?:like\s+)?(?:(?:to\s+(?:know|learn|hear)|any|more|further|other|additional|another|anything|something|specific|me\s+to)\b).*\b(?:let\s+me|feel\s+free|please|ask|i\s+can|i'd|i'll|i\s+w(?:ill|ould)|questions?\W*$)
| as\s+an?\s+(?:(?:large|helpful|virtual|digital)\s+)?(?:ai|artificial\s+intelligence|language\s+model|assistant|chatbot)\b(?:[\w\s-]*)(?:,|\s)\s*i\b
| i\s*(?:am|'m)\s+(?:just\s+|only\s+)?an?\s+(?:(?:large|helpful|virtual|digital)\s+)?(?:ai|artificial\s+intelligence|language\s+model|assistant|chatbot)\b
| my\s+(?:training\s+data|knowledge\s+(?:cut-?off|is\s+limited))
| (?:please\s+)?note\s+that\s+(?:this\s+(?:answer|response|summary)|i\b|my\b)
| (?:here|below|above|these|this|the\s+following)(?:'s|\s+(?:is|are))\s+(?:(?:the|my|your|a|an|some|what|all)\s+)*(?:(?:short|brief|full|detailed|complete|direct|final|possible|requested|revised|quick|step-by-step)\s+)*(?:answers?|summary|summaries|response|reply|explanation|overview|list|breakdown|outline|analysis|information)(?:\s+(?:to|for|of|based|from|using|you)\b[^,;]*)?\W*$
| (?:based\s+on|according\s+to|from|given|using)\s+(?:(?:the|these|this|all|your|my|above|provided|given|available|retrieved|following)\s+)*(?:passages?|documents?|contexts?|texts?|sources?|information|excerpts?|materials?|articles?)(?:\s+(?:provided|given|above|below|available|retrieved|you\s+(?:gave|provided|shared)|\d+|and|or))*\W*$
| (?:the\s+)?(?:provided\s+|given\s+|above\s+|retrieved\s+)?(?:passages?|documents?|contexts?|excerpts?)(?:\s+(?:provided|given|above))?\s+(?:only\s+|mainly\s+|mostly\s+|just\s+|all\s+)?(?:discuss|focus|talk|deal)(?:e?s)?\b
| (?:the\s+)?(?:provided\s+|given\s+|above\s+|retrieved\s+)?(?:passages?|documents?|contexts?|excerpts?)\s+(?:only|mainly|mostly|just)\s+(?:mention|describe|cover|contain|give|provide|say|state|refer)s?\b
| (?:the\s+)?(?:(?:final|short|correct)\s+)?(?:answers?|response|sources?|references?|citations?|conclusion|summary|explanation|notes?)(?:\s+is)?\W*$
"""
_VIETNAMESE = r"""
(?:xin\s+)?chào(?:\s+(?:bạn|mừng|anh|chị|các\s+bạn|mọi\s+người|quý\s+khách))*\W*$
| (?:xin\s+)?(?:cảm|cám)\s+ơn(?:\s+(?:bạn|anh|chị|rất\s+nhiều))*(?:\s+(?:đã|vì)\b[^,;]*)?\W*$
| (?:vâng|dạ|được\s+rồi|tất\s+nhiên|chắc\s+chắn(?:\s+rồi)?|rất\s+tiếc|(?:tôi\s+)?xin\s+lỗi)\W*$
| (?:tôi\s+)?(?:rất\s+)?(?:hy|hi)\s+vọng\s+(?:rằng\s+)?(?:điều|thông\s+tin|câu\s+trả\s+lời|những|nó|bạn|phần)
| (?:xin\s+)?(?:hãy|vui\s+lòng|xin)\s+(?:cho\s+(?:tôi|mình)\s+biết|liên\s+hệ|hỏi|cung\s+cấp\s+thêm|đặt\s+câu\s+hỏi)
| nếu\s+(?:bạn|anh|chị|quý\s+khách)\s+(?:còn\s+|có\s+|cần\s+|muốn\s+)+(?:thêm|bất\s+kỳ|biết\s+thêm|tìm\s+hiểu|câu\s+hỏi|thắc\s+mắc|hỏi|giúp|thông\s+tin|điều\s+gì)
| (?:là|với\s+tư\s+cách\s+là)\s+(?:một\s+)?(?:ai\b|trí\s+tuệ\s+nhân\s+tạo|mô\s+hình\s+ngôn\s+ngữ|trợ\s+lý)[^,]*,\s*(?:tôi|mình)
| (?:tôi|mình)\s+(?:chỉ\s+)?là\s+(?:một\s+)?(?:ai\b|trí\s+tuệ\s+nhân\s+tạo|mô\s+hình\s+ngôn\s+ngữ|trợ\s+lý)
| (?:tôi|mình)\s+(?:rất\s+vui|sẵn\s+(?:sàng|lòng)|sẽ\s+(?:trả\s+lời|giải\s+thích|tóm\s+tắt|giúp|cố\s+gắng)|có\s+thể\s+giúp)
| rất\s+vui\s+(?:được\s+)?(?:giúp|hỗ\s+trợ)
| (?:dưới|sau|trên)\s+đây\s+là\s+(?:(?:một|các|những|phần|bản)\s+)*(?:câu\s+trả\s+lời|danh\s+sách|tóm\s+tắt|thông\s+tin|giải\s+thích|đáp\s+án)[^,;]*$
| (?:dựa\s+(?:trên|vào|theo)|theo|căn\s+cứ\s+vào)\s+(?:(?:các|những|nội\s+dung)\s+)*(?:đoạn\s+văn|tài\s+liệu|văn\s+bản|thông\s+tin|ngữ\s+cảnh)(?:\s+(?:được|đã|cung\s+cấp|cho|ở|trên|này|bạn|đưa\s+ra|sẵn|có))*\W*$
| (?:câu\s+)?trả\s+lời\W*$ | đáp\s+án\W*$ | (?:nguồn|tài\s+liệu\s+tham\s+khảo|kết\s+luận|tóm\s+lại)\W*$
"""
_CHINESE = r"""
(?:你好|您好|大家好|嗨|早上好|晚上好|欢迎|歡迎|再见)\W*$
| (?:谢谢|謝謝|感谢|感謝)(?:你|您|大家)?(?:的(?:提问|提問|问题|問題|阅读))?\W*$
| (?:好的|当然(?:可以)?|當然(?:可以)?|没问题|抱歉|对不起|對不起|不客气|很好的问题)\W*$
| (?:我)?(?:希望|但愿)(?:这|這|以上|上述|我的|能|可以|对|對).*(?:帮|幫|用|解答|助)
| (?:如果|若|如)(?:你|您)?(?:还|還)?(?:有|需要|想)(?:要|了解|知道)?(?:任何|其他|其它|更多|进一步|別的|别的|疑问|疑問|问题|問題|什么)
| (?:请|請)(?:随时|隨時|您|你)?(?:告诉我|告訴我|告知|联系|聯繫|提供|提问|提問|问我|指出)
| (?:欢迎|歡迎)(?:随时|隨時|继续|繼續)
| (?:作为|作為|身为)(?:一个|一個|一名|一位)?(?:大型)?(?:ai|人工智能|人工智慧|语言模型|語言模型|助手|智能助手)[^，,]*[，,]\s*我
| 我(?:只)?是(?:一个|一個|一名|一位)?(?:大型)?(?:ai|人工智能|人工智慧|语言模型|語言模型|助手)
| 我(?:很高兴|很高興|会尽力|會盡力|来为|來為|将为|將為|可以帮|可以幫)
| (?:以下|下面|这|這)(?:就)?(?:是|为|為)(?:我)?(?:对|對|关于|關於|您|你)?[^，,。]{0,12}(?:答案|回答|总结|總結|摘要|列表|解释|解釋|说明|說明|清单)\W*$
| (?:根据|根據|基于|基於|依据|依據)(?:您|你)?(?:以上|上述|上面|所)?(?:提供|给出|給出|给定|給定|检索到)?的?(?:以上|这些|這些)?(?:段落|资料|資料|文档|文件|上下文|信息|資訊|文章|内容|內容|文本|材料)(?:中)?(?:的(?:内容|信息|資訊))?\W*$
| (?:答案|回答|来源|來源|参考(?:文献|资料)|总结|總結|结论|結論|注意)(?:如下)?\W*$
"""
_META = regex.compile(
    rf"(?:{_ENGLISH})|(?:{_VIETNAMESE})|(?:{_CHINESE})", regex.VERBOSE | regex.IGNORECASE | regex.DOTALL
)
_QUESTION = regex.compile(r"[?？][?!？！*_)）\s]*$")
_ANNOUNCES = regex.compile(r"[:：][*_\s]*$")
_FRONT = regex.compile(r"^[\s*_#>\"'“”‘’(\[（「『-]+")
# What is left of a sentence that was cut off; "no", "both" and "one" may be answers.
_LOOSE = frozenset(
    "a an and are as at but by for he in is it its of on or she so that the they this to was were which with".split()
)
_HEAD = 400  # longer texts say more than "I hope this helps"


def is_relevant(text: str) -> bool:
    """Tell whether a claim or sentence states something that evidence could support.

    Not so: refusals, greetings, questions, talk about the answer, the model or the passages as such, what
    only announces what comes next (it ends with a colon), loose little words ("The"), and text without a
    word.

    >>> [is_relevant(t) for t in ("Paris", "I hope this helps!", "以下是答案：", "Bạn muốn hỏi gì?")]
    [True, False, False, False]
    """
    found = words(text)
    # A letter by itself is an answer to choose from.
    is_loose = _LOOSE.issuperset(found) and found != ["a"]
    is_question = _QUESTION.search(text) and not _is_title(text)
    if is_loose or is_question or is_abstention(text) or _ANNOUNCES.search(text):
        return False
    head = _FRONT.sub("", folded(text)).strip()
    return len(head) > _HEAD or not _META.match(head)


def _is_title(text: str) -> bool:
    """Tell whether a question is a name, as of a film: every word of weight has a capital letter."""
    found = regex.findall(r"[\p{L}\p{M}]+", text)
    heavy = [word for word in found if len(word) > 3 and word.casefold() not in ENGLISH]
    return len(words(text)) >= 3 and len(heavy) >= 2 and all(word[0].isupper() for word in heavy)
