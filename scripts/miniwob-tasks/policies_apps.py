"""Policies for small applications: mail, social media, search, a terminal, an editor, flights, games."""

import re

from policies_fields import choose_day
from view import step


def index_of(view, name):
    """Returns the index of a text among the items, not counting the utterance."""
    return next(index for index, item in enumerate(view.items) if index and item.name == name)


def mail(view):
    """Deletes, marks, answers or forwards the mail that the utterance names."""
    sender = re.search(r"email by (\S+)", view.task)[1]
    at = index_of(view, sender)
    if "trash" in view.task or "star" in view.task:
        mark = ".trash" if "trash" in view.task else ".star"
        return (yield from view.click(next(item for item in view.items[at:] if item.mark == mark)))
    thread = [item for item in view.items[: at + 1] if item.handle][-1]
    task = view.task
    yield from view.click(thread)
    yield from view.look()
    if "reply" in task:
        yield from view.click(view.one(name="Reply"))
        yield from view.look()
        yield from view.type(view.one("textbox", mark="#reply-text"), re.search(r'text "(.*)"', task)[1])
        yield from view.click(view.one(mark="#send-reply"))
    else:
        yield from view.click(view.one(name="Forward"))
        yield from view.look()
        yield from view.type(view.one("textbox"), re.search(r"to (\S+)\.$", task)[1])
        yield from view.click(view.one(mark="#send-forward"))


SOCIAL_MARKS = {"Reply": ".reply", "Retweet": ".retweet", "Like": ".like", "Share": ".share"}


def posts_by(view, user):
    """Returns the items of each post of a user."""
    items = view.items[1:]
    starts = [index for index, item in enumerate(items) if not item.handle and re.search(r"@\w+", item.name)]
    for start, end in zip(starts, starts[1:] + [len(items)]):
        if user in items[start].name.split():
            yield items[start:end]


def social_media(view):
    """Clicks a button of a post, or an entry of its menu."""
    user = re.search(r"@\w+", view.task)[0]
    name = view.quoted()[0]
    post = next(posts_by(view, user))
    if name in SOCIAL_MARKS:
        return (yield from view.click(next(item for item in post if item.mark == SOCIAL_MARKS[name])))
    yield from view.click(next(item for item in post if item.mark == ".more"))
    yield from view.look()
    yield from view.click(view.one(where=lambda item: item.name.startswith(name)))


def social_media_posts(view):
    """Clicks the same button of all or some posts of a user."""
    user = re.search(r"@\w+", view.task)[0]
    mark = SOCIAL_MARKS[view.quoted()[0]]
    count = re.search(r"on (\d+) post", view.task)
    posts = list(posts_by(view, user))[: int(count[1]) if count else None]
    yield from view.click(*(item for post in posts for item in post if item.mark == mark))
    yield from view.look()
    yield from view.submit()


def search_engine(view):
    words, _ = view.quoted()
    number = int(re.search(r"(\d+)\w\w search result", view.task)[1])
    yield from view.type(view.one("textbox"), words)
    yield from view.submit("Search")
    yield from view.look()
    page, place = divmod(number - 1, 3)
    if page:
        yield from view.click(view.one("link", name=str(page + 1)))
        yield from view.look()
    titles = [item for item in view.all("link") if not re.fullmatch(r"\d+|[<>]", item.name)]
    yield from view.click(titles[place])


def terminal(view):
    """Lists the files, and removes the requested one."""
    extension = re.search(r"extension (\.[\w.]+)", view.task)
    box = view.one("textbox")
    yield from view.type(box, "ls", submit=True)
    yield from view.look()
    at = index_of(view, "user$ ls")
    files = view.items[at + 1].name.split()
    wanted = next(name for name in files if (name.endswith(extension[1]) if extension else "." not in name))
    yield from view.type(view.one("textbox"), f"rm {wanted}", submit=True)


def text_editor(view):
    """Highlights the text, then clicks the style."""
    words = re.search(r"the text (\S+) the", view.task)
    text = words[1] if words else view.one("textbox").value
    style = re.search(r"the style (\w+)", view.task)
    yield from view.act(step("highlight", view.one("textbox"), text=text))
    if style:
        mark = {"bold": ".ql-bold", "italics": ".ql-italic", "underlined": ".ql-underline"}[style[1]]
        yield from view.click(view.one("button", mark=mark))
    else:
        yield from choose_colour(view, re.search(r"color (\w+)", view.task)[1])
    yield from view.submit()


EDITOR_COLOURS = {"red": (230, 0, 0), "orange": (255, 153, 0), "yellow": (255, 255, 0), "green": (0, 138, 0)}
EDITOR_COLOURS |= {"blue": (0, 102, 204), "purple": (153, 51, 255)}


def choose_colour(view, name):
    yield from view.click(view.one("clickable", mark=".ql-picker-label"))
    yield from view.look()
    wanted = "rgb({},{},{})".format(*EDITOR_COLOURS[name])
    yield from view.click(view.one(where=lambda item: item.colour == wanted))


def highlight_text(view):
    ordinal = re.search(r"(\d)\w\w paragraph", view.task)
    text = view.texts[int(ordinal[1]) - 1 if ordinal else 0]
    yield from view.act(step("highlight", text=text))
    yield from view.submit()


# The time that the steps around a wait take.
STEP_SECONDS = 0.3


def button_delay(view):
    seconds = int(re.search(r"wait (\d+) second", view.task)[1])
    first, second = view.one("button", name="ONE"), view.one("button", name="TWO")
    yield from view.act(step("click", first), step("wait", seconds=seconds - STEP_SECONDS), step("click", second))


def book_flight(view):
    """Fills in the search, then compares prices or durations."""
    task = view.task
    start, end, date = re.search(r"from: (.*) to: (.*) on (\S+)\.", task).groups()
    month, day, year = map(int, date.split("/"))
    for label, place in (("From:", start), ("To:", end)):
        yield from view.type(view.one("textbox", name=label), place)
        yield from view.look()
        fits = lambda item: place in item.name or f"({place})" in item.name
        yield from view.click(view.one("option", "menuitem", "item", "clickable", where=fits))
    yield from view.click(view.one("textbox", mark="#datepicker"))
    yield from view.look()
    yield from choose_day(view, month, day, year)
    yield from view.submit("Search")
    yield from view.look()
    buttons = view.all("button", where=lambda item: "$" in item.name)
    if "cheapest" in task:
        costs = [item.number() for item in buttons]
    else:
        found = [re.search(r"(\d+)h (\d+)m", text) for text in view.texts]
        costs = [int(match[1]) * 60 + int(match[2]) for match in found if match]
    yield from view.click(buttons[costs.index(min(costs))])


TASKS = {
    "book-flight": book_flight,
    "button-delay": button_delay,
    "email-inbox": mail,
    "email-inbox-delete": mail,
    "email-inbox-forward": mail,
    "email-inbox-important": mail,
    "email-inbox-noscroll": mail,
    "email-inbox-reply": mail,
    "email-inbox-star-reply": mail,
    "highlight-text": highlight_text,
    "highlight-text-2": highlight_text,
    "search-engine": search_engine,
    "social-media": social_media,
    "social-media-all": social_media_posts,
    "social-media-some": social_media_posts,
    "terminal": terminal,
    "text-editor": text_editor,
}
