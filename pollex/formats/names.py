"""Words in names of columns and in values of some languages, which say what they are."""

import re
import unicodedata
from functools import lru_cache

_COLUMN_WORDS_BY_PART = {
    "messages": """messages turns verlauf dialog dialogue transcript messaggi mensajes berichten historique
        history conversation chat activities thread replies timeline mensagens meddelanden beskeder meldinger
        wiadomości rozmowa mesajlar zprávy сообщения диалог переписка メッセージ 会話ログ 消息 对话 메시지""",
    "text": """text content message body nachricht inhalt beitrag mensaje texto messaggio testo mensagem
        tekst bericht texte utterance words msg treść metin mesaj besked meddelande melding zpráva текст
        сообщение 発言内容 本文 内容 メッセージ 消息 文本 내용 메시지 رسالة نص""",
    "role": """role speaker sender author absender rolle sprecher autor verfasser von remitente emisor rol
        expediteur auteur mittente ruolo remetente papel afzender from who wer direction actor bot obj side
        participant kind type by kto nadawca gönderen kim avsändare vem afsender avsender hvem odesílatel kdo
        отправитель автор роль кто 発言者 話者 送信者 役割 角色 发送者 发言人 역할 발신자 화자 مرسل دور""",
    "conversation": """conversation chat thread session ticket dialog dialogue gespraech unterhaltung vorgang
        fall anfrage case conversacion sesion discussion conversazione sessione conversa gesprek zaak conv call
        sitzung topic talk caso séance échange atendimento protocolo samtal ärende samtale sag rozmowa sohbet
        konuşma görüşme konverzace беседа чат диалог обращение 会話 対話 セッション 会话 对话 工单 대화 세션
        محادثة folio expediente dossier akte""",
    "id": "id uuid key nr num nummer number hash numer číslo номер 番号 编号 번호",
    "label": """label labels thumb thumbs rating ratings feedback vote votes scores note
        bewertung daumen zufriedenheit urteil nota
        valoracion voto avis evaluation valutazione giudizio avaliacao beoordeling score stars csat sterne
        quality nps satisfaction thumbup verdict reaction reactions zufrieden oordeel satisfied satisfecho
        contento satisfait helpful hilfreich voting bewertet judgement judgment resolved solved success
        successful ok outcome mood smiley emoji flag flags survey grade geloest resuelto resolu risolto opgelost
        resolution helped help recommend happiness happy soddisfatto soddisfazione gradimento esito estrellas
        pulgar pulgares pouce pouces pollice polegar
        satisfacción gustó útil étoiles estrelas satisfeito satisfação gostou duim tevreden tevredenheid sterren
        betyg omdöme nöjd tumme hjälpte vurdering bedømmelse tilfreds tommel tommelfinger ocena kciuk zadowolony
        zadowolenie puan değerlendirme memnuniyet oy beğeni hodnocení spokojenost palec оценка рейтинг отзыв
        評価 満足度 フィードバック 评价 评分 满意度 反馈 평가 만족도 평점 피드백 تقييم positive
        calificación puntuación puntaje encuesta classificação pontuação notation appréciation wertung
        punteggio waardering балл schulnote schulnoten good liked upvoted useful""",
    "comment": """comment comments kommentar bemerkung comentario commentaire commento opmerking remark remarks
        comentário komentarz uwagi yorum komentář комментарий コメント 备注 评论 댓글 의견""",
    "remark": """note notes anmerkung anmerkungen remarque observaciones verbatim why reason reasons rationale
        explanation free freetext freitext begründung grund warum pourquoi motif motivo razón motivazione reden
        uzasadnienie причина 理由 原因 이유 toelichting uitleg erläuterung erklärung detalle detalles détail détails
        précisions explicación spiegazione dettagli explicação justificativa justificación justification""",
    "time": """time timestamp date datetime created zeit zeitpunkt datum uhrzeit fecha hora heure horodatage
        ora data tijd ts at sent tidpunkt tid czas tarih zaman čas время дата 日時 時刻 时间 日期 시간 일시""",
    "turn": "turn position index seq order nr nummer schritt paso etape passo stap n ordem ordine kolejność sıra",
    "user": """user question questions prompts queries
        prompt query frage kundenfrage pregunta domanda pergunta vraag anliegen input asked q
        ask fråga spørgsmål spørsmål pytanie soru otázka вопрос 質問 问题 提问 질문 سؤال""",
    "assistant": """assistant answers responses
        answer response reply antwort respuesta reponse risposta resposta antwoord output
        completion completions generation generated answered bot a svar odpowiedź cevap yanıt odpověď ответ
        回答 返答 回复 答案 답변 응답 جواب إجابة""",
}
"""Words of columns' names by part; `remark` has those that name a comment only beside a label."""
_USER_WORDS = """user kunde kundin kunden nutzer nutzerin benutzer anwender gast besucher anrufer cliente usuario
    usuaria utilisateur client visiteur utente visitatore utilizador klant gebruiker bezoeker patient buyer
    guest member student inbound incoming q caller external end_user enduser prompter usr
    klient klientka müşteri kullanıcı kund kunden användare bruger zákazník uživatel клиент пользователь
    посетитель お客様 顧客 利用者 ユーザー ユーザ 用户 客户 顾客 访客 고객 사용자 عميل مستخدم"""
_ASSISTANT_WORDS = """bot assistent assistentin berater beraterin agent agentin mitarbeiter mitarbeiterin support ki
    asistente agente robot conseiller assistente operatore atendente medewerker robo shop helpdesk advisor
    outbound outgoing staff a answer_bot virtual chatbot ai helper service concierge robô robo
    asystent konsultant asistan temsilci assistent botten asistent ассистент бот оператор помощник
    アシスタント ボット オペレーター 担当者 助手 机器人 客服 상담원 봇 챗봇 어시스턴트 مساعد روبوت"""
_SERVICE_WORDS = """service support care success helpdesk hotline servicio atención soporte servizio assistenza
    atendimento suporte sav soutien obsługa поддержка поддержки asiakaspalvelu"""
_SERVICE_COMPOUND_ENDS = ("service", "dienst", "betreuung", "support", "tjaenst", "zentrale")
"""How names of whoever serves customers end: `Klantenservice`, `Kundendienst`."""
_GOOD_WORD_LIST = """gut super hilfreich ja zufrieden positiv bueno buena si bien bon bonne oui buono buona sim bom boa
    goed tevreden daumen_hoch acceptable great excellent ok okay fine satisfactory perfect useful helped
    hoch rauf gelöst nützlich útil satisfecho resuelto contento satisfait utile résolu soddisfatto risolto
    ottimo satisfeito resolvido ótimo nuttig opgelost omhoog bra nöjd löst hjälpte god godt tilfreds løst hjalp
    dobry dobra dobrze tak zadowolony pomocne w_górę kciuk_w_górę iyi evet memnun yararlı beğendim yukarı
    dobrý dobré ano spokojený nahoru хорошо да отлично доволен полезно нравится решено
    positivo positiva positif positive positief satisfecha satisfaite soddisfatta satisfeita behulpzaam
    prima top toll klasse spitze ótima óptimo óptima genial génial voldoende
    arriba en_haut in_su para_cima hacia_arriba vers_le_haut all'insù levé
    risolta résolue resuelta resolvida pulgar_arriba pouce_levé pouce_en_haut pollice_su polegar_para_cima
    duim_omhoog excelente excellente eccellente uitstekend hervorragend ausgezeichnet perfekt perfecto
    perfetto perfeito parfait hilfreiche
    良い はい 満足 高評価 役に立った 解決 好 是 满意 赞 有用 好评 已解决 좋음 예 네 만족 도움됨 해결 جيد نعم مفيد"""
_BAD_WORD_LIST = """
    schlecht nein unzufrieden negativ malo mala no mal mauvais mauvaise non cattivo cattiva nao ruim slecht
    ontevreden daumen_runter unacceptable poor terrible awful useless unsatisfactory wrong nutzlos runter ungelöst
    insatisfecho inútil insatisfait inutile insoddisfatto pessimo insatisfeito péssimo nutteloos omlaag nee
    dålig dåligt nej missnöjd dårlig dårligt utilfreds nei zły zła źle nie niezadowolony niepomocne w_dół
    kciuk_w_dół kötü hayır memnun_değil aşağı beğenmedim špatný špatné ne nespokojený dolů плохо нет недоволен
    negativo negativa négatif négative negatief insatisfecha insatisfaite insoddisfatta insatisfeita
    abajo en_bas in_giù para_baixo hacia_abajo vers_le_bas baissé
    pulgar_abajo pouce_baissé pouce_en_bas pollice_giù polegar_para_baixo duim_omlaag mangelhaft irresolu
    enttäuscht enttäuschend déçu déçue décevant decepcionado decepcionada decepcionante deluso delusa deludente
    teleurgesteld teleurstellend onvoldoende ungenügend insuffisant pésima péssima ko
    insuficiente deficiente irrisolto irrisolta onopgelost
    бесполезно 悪い いいえ 不満 低評価 役に立たなかった 未解決 差 否 不满 不满意 踩 没用 差评 未解决
    나쁨 아니오 아니요 불만족 불만 미해결 سيئ لا"""
_NEGATION_WORD_LIST = """not nicht kein keine non no pas inte ej ikke nie não niet без не değil ne geen 不 没 未
    never hardly barely little nothing less nada poco poca nunca menos tampoco peu jamais rien moins niente nulla
    meno mica wenig weniger kaum keiner keinem keinen keinesfalls keineswegs pouco pouca nenhum weinig minder
    nauwelijks niets mindre ingen мало"""
_ANSWERED_WORDS = frozenset(
    """answered replied responded rated contesto contesta contestado contestada beantwortet geantwortet
    beantwoord geantwoord abgegeben bewertet beoordeeld respondido respondida respondio respondeu
    repondu risposto note valutato avaliado calificado besvarat besvaret
    given provided filled specified expressed submitted angegeben ausgefuellt indicado indicada informado
    informada expresado expresada renseigne renseignee rempli remplie exprime exprimee indique indiquee
    espresso espressa indicato indicata fornito fornita compilato compilata preenchido preenchida
    ingevuld opgegeven gegeven ifyllt angivet angivit udfyldt utfylt""".split()  # noqa: SIM905
)
"""What somebody did who rated, without accents."""
_INTENSIFIER_WORD_LIST = """very really quite extremely somewhat rather totally completely absolutely so at all
    sehr eher ziemlich ganz völlig äußerst total absolut gar überhaupt muy bastante totalmente para
    très plutôt assez tout à fait vraiment du molto abbastanza piuttosto davvero per del tutto muito demais
    zeer erg heel redelijk helemaal mycket väldigt ganska alls meget veldig bardzo raczej çok очень скорее"""
_WITHOUT_WORD_LIST = """
    no not none nicht niet pas não non inte ikke
    without kein keine keinen ohne sans aucun aucune sin ninguna ningún ninguno sem nenhuma nenhum
    senza nessun nessuna nessuno geen zonder ingen inget utan uden uten brak bez yok без нет нету"""
_RATING_WORD_LIST = """
    rating ratings rated vote votes feedback score response answer reply review evaluation bewertung urteil
    antwort rückmeldung stimme nota valoración voto respuesta evaluación avis réponse évaluation note valutazione
    giudizio risposta avaliação resposta beoordeling oordeel antwoord betyg svar omdöme vurdering bedømmelse ocena
    odpowiedź głos opinii puan değerlendirme yanıt cevap hodnocení odpověď оценка оценки ответ ответа отзыв отзыва
    opinion opinions meinung meinungen mening opinión opinião opinione zdania åsikt menning görüş мнения názor"""
_UNSPACED_UNRATED_PATTERN = re.compile(
    "(?:未|無|无|没有|沒有|미|무)(?:評価|回答|評|投票|评价|评分|回复|评论|评|평가|응답|답변|평|선택)"
    "|(?:평가|응답|답변|評価|回答|评价|评分|回复)(?:なし|无|없음)"
)
_ABSTAINED_WORD_LIST = """unknown partly partially somewhat teilweise en_partie in_parte parcialmente em_parte
    gedeeltelijk delvis częściowo kısmen částečně частично nicht_bewertet unbewertet
    keine_angabe sin_calificar sin_valorar non_noté non_valutato não_avaliado niet_beoordeeld ej_betygsatt
    ikke_vurderet nie_oceniono değerlendirilmedi nehodnoceno не_оценено без_оценки 未評価 評価なし 普通 どちらでもない
    未评价 未评分 一般 미평가 보통 medium neutralny nötr нейтрально neutraal neutre neutro neutra neutrale weder_noch
    teils_teils mittel mittelmässig mässig durchschnittlich so_lala naja na_ja egal ni_oui_ni_non moyen moyenne
    weiss_nicht weiß_nicht keine_ahnung don't_know dont_know not_sure unsure no_idea prefer_not_to_say
    no_sé no_se no_sabe no_opina je_ne_sais_pas ne_sait_pas ne_se_prononce_pas non_so não_sei nao_sei weet_niet
    indifferent indiferente indifférent indifferente onverschillig k.a. n.v.t. s/o ns/nc nsp
    bof regular así_así más_o_menos mais_ou_menos razoável médio medio così_così matig gemiddeld gaat_wel"""

_LETTER_REPLACEMENTS = str.maketrans(
    {
        "ä": "ae",
        "ö": "oe",
        "ü": "ue",
        "ł": "l",
        "ø": "o",
        "đ": "d",
        "ı": "i",
        "æ": "ae",
    }
)


@lru_cache(maxsize=8192)
def remove_accents(text: str) -> str:
    """Return lower case without accents; German umlauts as two letters. Letters of other scripts stay."""
    folded = text.strip().casefold().translate(_LETTER_REPLACEMENTS)
    decomposed = unicodedata.normalize("NFKD", folded)
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))


def normalize_word(text: str) -> str:
    """Return a word as lists of words here spell it."""
    return remove_accents(text).replace(" ", "_")


def _split_plain_words(words: str) -> frozenset[str]:
    return frozenset(map(remove_accents, words.split()))


COLUMN_NAME_WORDS_BY_PART = {
    part: _split_plain_words(words) for part, words in _COLUMN_WORDS_BY_PART.items()
}
ROLE_BY_SPEAKER_WORD = dict.fromkeys(_split_plain_words(_USER_WORDS), "user") | dict.fromkeys(
    _split_plain_words(_ASSISTANT_WORDS), "assistant"
)
"""Who names of roles mean."""
_SERVICE_WORD_SET = _split_plain_words(_SERVICE_WORDS)
WORDS_MEANING_THUMB_UP = _split_plain_words(_GOOD_WORD_LIST)
WORDS_MEANING_THUMB_DOWN = _split_plain_words(_BAD_WORD_LIST)
NEGATION_WORDS = _split_plain_words(_NEGATION_WORD_LIST)
ARTICLES = frozenset("a un une ein um een".split())  # noqa: SIM905
"""Words that make a little of little: `a little helpful`, `un peu satisfait`."""
LABEL_VALUES_MEANING_NO_RATING = frozenset(_ABSTAINED_WORD_LIST.split())
"""Values of labels by which whoever rated took no side, or nobody rated."""
WORDS_MEANING_WITHOUT = _split_plain_words(_WITHOUT_WORD_LIST)
ALONE_UNRATED_WORDS = frozenset(
    "keine keiner aucun aucune ninguna ninguno nenhuma nenhum nessuna nessuno geen brak".split()  # noqa: SIM905
)
"""Words that say by themselves that there is no rating; `no` and `nein` may be answers."""
INTENSIFIER_WORDS = _split_plain_words(_INTENSIFIER_WORD_LIST)
"""Words that say how much, and leave a word its side."""
_RATING_WORD_STEMS = frozenset(word[:4] for word in _split_plain_words(_RATING_WORD_LIST))
_WORD_PATTERN = re.compile(r"[a-z]+|[^\W\d_a-z]+")
"""Words of a plain name; a word of another script ends where Latin letters begin."""
_QUESTION_MARKS = ("?", "？")
"""How the name of a column ends that is a question."""
_CAPITAL_WORD_START_PATTERN = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=Ids?(?![a-z]))")
"""Where a word begins by a capital: `ratedBy`, `HITId`."""
_COMPOUND_ID_PATTERN = re.compile("s?(?:nr|nummer|id|ids|uuid|number|ref|code)$")
"""How a name ends that names the id of what stands before it."""
_LABEL_COMPOUND_ENDS = ("bewertung", "zufriedenheit", "beoordeling", "tevredenheid", "omdoeme")
"""How names end that are one word of several: `Kundenzufriedenheit`, `Sternebewertung`."""
_UNSPACED_SCRIPT_PATTERN = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


def split_name_words(name: str) -> list[str]:
    """Return the words of a name without accents, those that capitals set apart, too."""
    return _WORD_PATTERN.findall(remove_accents(_CAPITAL_WORD_START_PATTERN.sub("_", name)))


def is_name_of_service(name: str) -> bool:
    """Return whether a speaker's name is of those who serve customers: `Customer Care`, `Klantenservice`."""
    return any(
        word in _SERVICE_WORD_SET or word.endswith(_SERVICE_COMPOUND_ENDS)
        for word in split_name_words(name)
    )


def does_label_text_say_not_rated(text: str) -> bool:
    """Return whether a value of a label says that there is no rating: `no rating`, `keine Bewertung`, `미응답`."""
    if _UNSPACED_UNRATED_PATTERN.search(text):
        return True
    # up to four words: one that says without, and another that names a rating
    words = remove_accents(text).split()
    if len(words) == 1 and words[0] in ALONE_UNRATED_WORDS:
        return True
    if not 1 < len(words) <= 4 or WORDS_MEANING_WITHOUT.isdisjoint(words):
        return False
    rest = [word for word in words if word not in WORDS_MEANING_WITHOUT]
    return bool(rest) and any(
        word in _ANSWERED_WORDS or word[:4] in _RATING_WORD_STEMS for word in rest
    )


@lru_cache(maxsize=4096)
def is_named_as_part(path: str, part: str) -> bool:
    """Return whether the last name of a path says what the column is."""
    # the last step of a path names the column, as in `messages[].role`
    *_, last = [step for step in path.replace("[]", "").split(".") if step] or [path]
    words = split_name_words(last)
    if part == "conversation":  # `Ticketnummer`, `conversationid`, `Sitzungs-ID`
        words += [_COMPOUND_ID_PATTERN.sub("", word) for word in words]
        words += [word.removesuffix("s") for word in words]
    if part == "label" and any(word.endswith(_LABEL_COMPOUND_ENDS) for word in words):
        return True
    return any(
        word in COLUMN_NAME_WORDS_BY_PART[part] or _contains_part_word(word, part) for word in words
    )


def is_named_as_comment(path: str) -> bool:
    """Return whether a name may be that of what people wrote with a thumb: `remark`, `feedbackText`."""
    if is_named_as_part(path, "comment") or is_named_as_part(path, "remark"):
        return True
    if is_named_as_part(path, "label") and is_named_as_part(path, "text"):
        return True
    # a survey's question is the name of its answers
    return path.rstrip().endswith(_QUESTION_MARKS) and not is_named_as_part(path, "user")


def _contains_part_word(word: str, part: str) -> bool:
    """Return whether a word of a script without spaces, as Chinese or Japanese, has such a word in it."""
    if not _UNSPACED_SCRIPT_PATTERN.match(word):
        return False
    return any(
        len(name) > 1 and _UNSPACED_SCRIPT_PATTERN.match(name) and name in word
        for name in COLUMN_NAME_WORDS_BY_PART[part]
    )
