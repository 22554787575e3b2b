"""A policy's view of the page: the lines of `browser_observe`, updated by the differences that `browser_act` reports. Actions are
generators: `yield from view.click(item)` calls the tool and reads its result."""

import dataclasses
import re

PART = re.compile(r'(?:(h\d) )?(?:(e\d+) )?([A-Za-z][\w-]*)?(?: ?"((?:[^"\\]|\\.)*)")?(.*)', re.DOTALL)
STATE = re.compile(r"\[([a-z -]+)\]")
SEPARATOR = re.compile(r' \| (?=(?:[^"\\]|\\.|"(?:[^"\\]|\\.)*")*$)')


def unquote(text):
    return re.sub(r"\\(.)", r"\1", text)


@dataclasses.dataclass
class Item:
    """One element on a line."""

    handle: str | None
    role: str
    name: str
    details: str
    depth: int = 0

    def __post_init__(self):
        find = lambda pattern: re.search(pattern, " " + self.details)
        value = find(r' value="((?:[^"\\]|\\.)*)"')
        self.value = unquote(value[1]) if value else ""
        plain = re.sub(r'"(?:[^"\\]|\\.)*"', "", self.details)
        self.states = set(STATE.findall(plain))
        size, position, paint = find(r" (\d+)x(\d+)"), find(r" at (-?\d+),(-?\d+)"), find(r" (?:fill|colour|stroke)=(\S+)")
        self.width, self.height = (int(size[1]), int(size[2])) if size else (0, 0)
        self.x, self.y = (int(position[1]), int(position[2])) if position else (0, 0)
        self.colour = paint[1] if paint else ""
        mark = find(r" ([#.][\w-]+)")
        self.mark = mark[1] if mark else ""

    @property
    def middle(self):
        """The centre of a shape, in the coordinates of its drawing."""
        return self.x + self.width / 2, self.y + self.height / 2

    def number(self):
        """Returns the first number in the name."""
        return float(re.search(r"-?\d+(?:\.\d+)?", self.name)[0])


def parse_line(line):
    """Returns the items of a line."""
    depth = len(line) - len(line.lstrip(" "))
    text = line.strip()
    if text.startswith(("row ", "- ")) and not text.startswith("row .") and not re.match(r"row \d+x", text):
        text = text.split(" ", 1)[1]
    parts = []
    for part in SEPARATOR.split(text):
        # The options of a list use the same separator.
        if parts and " options:" in parts[-1] and not re.match(r'e\d+ |"', part):
            parts[-1] += " | " + part
        else:
            parts.append(part)
    items = []
    for part in parts:
        heading, handle, role, name, details = PART.fullmatch(part).groups()
        items.append(Item(handle, role or heading or "text", unquote(name or ""), details or "", depth))
    return items


class View:
    """The page as the tools have described it."""

    def __init__(self, show=False):
        self.show = show
        self.lines = []
        self.output = ""

    # Reading

    def read(self, output):
        """Updates the view with the result of a tool."""
        if self.show:
            print(output, flush=True)
        self.output = output
        if "[page " not in output:
            raise ValueError(output.strip()[:300] or "no result")
        above, _, page = output.partition("[page ")
        if "failed: " in above:
            raise ValueError(above.strip()[:300])
        lines = page.split("\n")[1:]
        is_difference = any(line.startswith(("[changes since", "[nothing changed")) for line in lines)
        lines = [line for line in lines if line.strip() and not line.startswith("[") and not line.strip().startswith("…")]
        if not is_difference:
            self.lines = [parse_line(line) for line in lines]
            return
        for line in lines:
            self.change(line[0], line[2:])

    def change(self, mark, text):
        text = re.sub(r" \(moved [^()]*\)$", "", text)
        text, _, former = text.partition(" (was e")
        items = parse_line(text)
        handles = {item.handle for item in items if item.handle}
        if former:
            handles = {"e" + former.rstrip(")")}

        def is_same(line):
            if handles:
                return any(item.handle in handles for item in line)
            return (line[0].role, line[0].name) == (items[0].role, items[0].name)

        at = next((index for index, line in enumerate(self.lines) if is_same(line)), None)
        if mark == "-":
            if at is not None:
                del self.lines[at]
        elif at is not None:
            self.lines[at] = items
        else:
            self.lines.append(items)

    # Finding

    @property
    def items(self):
        return [item for line in self.lines for item in line]

    @property
    def task(self):
        """The utterance, which is the first text of a page."""
        return self.plain_texts()[0]

    @property
    def texts(self):
        """All texts after the utterance."""
        return self.plain_texts()[1:]

    def plain_texts(self):
        return [item.name for item in self.items if item.role == "text" and not item.handle]

    def quoted(self):
        """Returns the quoted texts in the utterance."""
        return re.findall(r'"([^"]*)"', self.task)

    def all(self, *roles, name=None, mark=None, where=None):
        def fits(item):
            return (
                item.handle
                and (not roles or item.role in roles)
                and (name is None or item.name == name)
                and (mark is None or item.mark == mark)
                and (where is None or where(item))
            )

        return [item for item in self.items if fits(item)]

    def one(self, *roles, name=None, mark=None, where=None):
        found = self.all(*roles, name=name, mark=mark, where=where)
        if not found:
            raise LookupError(f"no {'/'.join(roles)} {name or mark or ''} on the page")
        return found[0]

    # Acting

    def look(self, scope=None):
        """Observes the whole page again."""
        arguments = {"full": True} | ({"scope": scope.handle} if scope else {})
        self.read((yield "browser_observe", arguments))

    def act(self, *steps):
        """Runs steps, at most ten per call."""
        for start in range(0, len(steps), 10):
            self.read((yield "browser_act", {"steps": list(steps[start : start + 10])}))

    def click(self, *items, **more):
        yield from self.act(*(step("click", item, **more) for item in items))

    def type(self, item, text, **more):
        yield from self.act(step("type", item, text=text, **more))

    def press(self, *keys, item=None):
        yield from self.act(*(step("press", item if at == 0 else None, text=key) for at, key in enumerate(keys)))

    def submit(self, name="Submit"):
        yield from self.click(self.one("button", name=name))


def step(action, item=None, **more):
    """Returns a step: one action on an item."""
    return {"action": action} | ({"handle": item.handle} if item else {}) | more
