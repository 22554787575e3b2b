// Functions that run in lango's isolated world of a frame, with the element as `this`. They see the document, but not
// what the page's scripts changed about built-in functions.
const lango = {
    // Returns a point of the element, in coordinates of its frame's window, once the element has stopped moving.
    async locate(offset) {
        if (!this.isConnected) return { problem: 'gone' };
        const element = this.nodeType === 1 ? this : this.parentElement;
        const disabled = lango.disabled(element);
        if (disabled) return { problem: disabled };
        const rect = await lango.stableRect(element);
        if (!rect) return { problem: 'hidden' };
        const points = offset
            ? [[rect.left + offset[0], rect.top + offset[1]]]
            : lango.points(element, rect);
        if (!points.length) return { problem: 'outside' };
        let cover = null;
        for (const [x, y] of points) {
            const found = lango.hit(element, x, y);
            if (found.isHit) return { x, y };
            cover ??= found.cover;
        }
        globalThis.langoCover = cover;
        return { problem: cover ? 'covered' : 'outside' };
    },

    disabled(element) {
        if (element.matches(':disabled')) return 'disabled';
        for (let above = element; above; above = lango.parent(above)) {
            if (above.getAttribute?.('aria-disabled') === 'true') return 'disabled';
            if (above.inert) return 'inert';
        }
        return null;
    },

    // Waits until an element has the same rectangle in two animation frames in a row, for at most a second, and returns
    // it.
    async stableRect(element) {
        let last = null;
        for (let turn = 0; turn < 20; turn++) {
            const rect = lango.rect(element);
            const isSame = last && rect && last.left === rect.left && last.top === rect.top
                && last.width === rect.width && last.height === rect.height;
            if (isSame) return rect;
            last = rect;
            await new Promise(resolve => {
                const timer = setTimeout(resolve, 50);
                requestAnimationFrame(() => { clearTimeout(timer); resolve(); });
            });
        }
        return last;
    },

    rect(element) {
        const own = element.getBoundingClientRect();
        if (own.width > 0 && own.height > 0) return own;
        // The control may be hidden behind its label, or only its children have boxes.
        for (const other of [...(element.labels ?? []), ...element.children]) {
            const rect = other.getBoundingClientRect();
            if (rect.width > 0 && rect.height > 0) return rect;
        }
        return null;
    },

    // Returns the points to try: the middle of the element and of each line box, then a grid over the whole element.
    points(element, rect) {
        const points = [];
        const add = (x, y) => {
            const isInside = x >= 0 && y >= 0 && x < innerWidth && y < innerHeight;
            if (isInside) points.push([x, y]);
        };
        const middle = ({ left, top, right, bottom }) => {
            const [l, r] = [Math.max(left, 0), Math.min(right, innerWidth)];
            const [t, b] = [Math.max(top, 0), Math.min(bottom, innerHeight)];
            if (l < r && t < b) add((l + r) / 2, (t + b) / 2);
        };
        middle(rect);
        for (const box of [...element.getClientRects()].slice(0, 5)) middle(box);
        for (const row of [0.25, 0.5, 0.75, 0.05, 0.95])
            for (const column of [0.25, 0.5, 0.75, 0.05, 0.95])
                add(rect.left + rect.width * column, rect.top + rect.height * row);
        return points;
    },

    // Returns whether a click at a point of the frame's window hits the element, and which element it hits otherwise.
    hit(element, x, y) {
        const roots = [];
        for (let root = element.getRootNode(); root; root = root.host?.getRootNode()) roots.unshift(root);
        let found = null;
        for (const [index, root] of roots.entries()) {
            found = root.elementFromPoint(x, y);
            if (!found) return { isHit: false, cover: null };
            const host = roots[index + 1]?.host;
            if (host && found !== host && !lango.contains(found, host)) return { isHit: false, cover: found };
        }
        const label = found.closest('label');
        const isHit = lango.contains(element, found) || (label && label.control === element);
        return { isHit, cover: found };
    },

    parent(node) {
        return node.assignedSlot ?? node.parentElement ?? node.getRootNode?.()?.host ?? null;
    },

    contains(outer, inner) {
        for (let node = inner; node; node = lango.parent(node)) if (node === outer) return true;
        return false;
    },

    // Returns the outermost element that covers this one.
    cover() {
        let cover = globalThis.langoCover;
        for (let above = cover; above; above = lango.parent(above)) {
            if (lango.contains(above, this)) break;
            cover = above;
        }
        return cover;
    },

    coverLabel() {
        const role = this.getAttribute('role') ?? this.localName;
        const name = this.getAttribute('aria-label') ?? this.innerText ?? '';
        return [role, name.slice(0, 200)];
    },

    // Returns the position of a frame element's content in the window of its own frame, and its scale.
    frameBox() {
        const rect = this.getBoundingClientRect();
        const style = getComputedStyle(this);
        const scale = this.offsetWidth ? rect.width / this.offsetWidth : 1;
        const x = rect.left + (this.clientLeft + parseFloat(style.paddingLeft)) * scale;
        const y = rect.top + (this.clientTop + parseFloat(style.paddingTop)) * scale;
        return { x, y, scale };
    },

    frameHit(x, y) {
        const { isHit, cover } = lango.hit(this, x, y);
        if (!isHit) globalThis.langoCover = cover;
        return isHit || !cover;
    },
};
