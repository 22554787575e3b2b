// Functions for the fields of forms; see target.js.
Object.assign(lango, {
    // What kind of field this is, and what is in it.
    field() {
        if (!this.isConnected) return { kind: 'gone', value: '' };
        const type = (this.getAttribute?.('type') ?? '').toLowerCase();
        const isPassword = this.localName === 'input' && type === 'password';
        const set = ['date', 'time', 'month', 'week', 'datetime-local', 'color', 'range'];
        const click = ['checkbox', 'radio', 'button', 'submit', 'reset', 'image', 'file', 'hidden'];
        let kind = 'other';
        if (this.localName === 'textarea') kind = 'text';
        else if (this.localName === 'select') kind = 'select';
        else if (this.localName === 'input')
            kind = set.includes(type) ? 'set' : click.includes(type) ? type : 'text';
        else if (this.isContentEditable) kind = 'rich';
        const value = kind === 'rich' || kind === 'other' ? (this.innerText ?? '') : (this.value ?? '');
        const isReadOnly = Boolean(this.readOnly) || this.getAttribute?.('aria-readonly') === 'true';
        return { kind, value: String(value).slice(0, 2000), isPassword, isReadOnly };
    },

    // Gives the focus, with everything in the field selected or the cursor at its end.
    focus(selects) {
        this.focus({ preventScroll: true });
        if (selects === null || selects === undefined) return lango.hasFocus(this);
        if (typeof this.select === 'function' && this.localName !== 'select') {
            if (selects) this.select();
            else if (typeof this.setSelectionRange === 'function') {
                try { this.setSelectionRange(this.value.length, this.value.length); } catch { /* such as a number field */ }
            }
        } else if (this.isContentEditable) {
            const range = document.createRange();
            range.selectNodeContents(this);
            if (!selects) range.collapse(false);
            const selection = getSelection();
            selection.removeAllRanges();
            selection.addRange(range);
        }
        return lango.hasFocus(this);
    },

    hasFocus(element) {
        return element.matches(':focus-within');
    },

    // Sets the value of a field that is not typed into, such as a date, the way its own picker does.
    setValue(value) {
        const before = this.value;
        const setter = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
        setter.call(this, value);
        const now = this.value;
        if (now !== before) lango.announce(this);
        return now;
    },

    announce(element) {
        element.dispatchEvent(new Event('input', { bubbles: true, composed: true }));
        element.dispatchEvent(new Event('change', { bubbles: true }));
    },

    // Chooses options of a native list. Returns those that were not found, and what there is.
    choose(wanted) {
        const options = [...this.options];
        const words = text => text.trim().replace(/\s+/g, ' ');
        const find = text => {
            const plain = words(text).toLowerCase();
            return options.find(option => option.value === text)
                ?? options.find(option => words(option.label) === words(text))
                ?? options.find(option => words(option.label).toLowerCase() === plain || option.value.toLowerCase() === plain);
        };
        const names = options.slice(0, 30).map(option => words(option.label).slice(0, 60));
        const found = wanted.map(find);
        const missing = wanted.filter((_, index) => !found[index]);
        const closed = found.find(option => option?.disabled || option?.parentElement?.disabled);
        if (missing.length || closed) {
            return { missing: missing[0] ?? null, closed: closed ? words(closed.label) : null, names, count: options.length };
        }
        if (!this.multiple && found.length !== 1) return { single: true, names, count: options.length };
        for (const option of options) option.selected = found.includes(option);
        lango.announce(this);
        return { chosen: found.map(option => words(option.label).slice(0, 60)) };
    },

    // The option of a list made of other elements, by its text.
    findOption(text) {
        const words = node => (node.getAttribute('aria-label') ?? node.innerText ?? '').trim().replace(/\s+/g, ' ').toLowerCase();
        const wanted = text.trim().replace(/\s+/g, ' ').toLowerCase();
        const owned = (this.getAttribute('aria-controls') ?? this.getAttribute('aria-owns') ?? '').split(/\s+/)
            .filter(Boolean).map(id => this.getRootNode().getElementById?.(id)).filter(Boolean);
        const roles = '[role=option], [role=menuitem], [role=menuitemradio], [role=treeitem], li';
        for (const place of [this, ...owned, this.getRootNode(), document]) {
            const all = [...place.querySelectorAll(roles)].filter(node => node.getClientRects().length);
            const found = all.find(node => words(node) === wanted)
                ?? all.find(node => node.getAttribute('data-value')?.toLowerCase() === wanted)
                ?? all.find(node => words(node).startsWith(wanted));
            if (found) return found;
        }
        return null;
    },

    // Whether a box is checked; none for what is not one.
    checked() {
        if (this.localName === 'input' && ['checkbox', 'radio'].includes(this.type)) return this.checked;
        const state = this.getAttribute('aria-checked') ?? this.getAttribute('aria-pressed') ?? this.getAttribute('aria-selected');
        return state === null ? null : state === 'true';
    },

    isFileInput() {
        return this.localName === 'input' && this.type === 'file';
    },

    // Scrolls what moves by so many screens. Returns how far it went and what is left.
    scroll(down, right) {
        const moves = node => {
            const style = getComputedStyle(node);
            const isRoot = node === document.scrollingElement;
            const vertical = node.scrollHeight > node.clientHeight + 1 && (isRoot || /auto|scroll/.test(style.overflowY));
            const horizontal = node.scrollWidth > node.clientWidth + 1 && (isRoot || /auto|scroll/.test(style.overflowX));
            return (down && vertical) || (right && horizontal);
        };
        const isPage = this === document.documentElement || this === document.body;
        let box = null;
        // The page, or what fills most of it, or the nearest box around the element.
        const start = isPage ? document.elementFromPoint(innerWidth / 2, innerHeight / 2) ?? this : this;
        if (isPage && document.scrollingElement && moves(document.scrollingElement)) box = document.scrollingElement;
        for (let node = start; node && !box; node = lango.parent(node)) if (moves(node)) box = node;
        if (!box) return null;
        const [left, top] = [box.scrollLeft, box.scrollTop];
        const isRoot = box === document.scrollingElement;
        const [width, height] = isRoot ? [innerWidth, innerHeight] : [box.clientWidth, box.clientHeight];
        box.scrollTo({ left: left + right * width * 0.9, top: top + down * height * 0.9, behavior: 'instant' });
        return {
            moved: Math.round(Math.abs(box.scrollTop - top) + Math.abs(box.scrollLeft - left)),
            left: Math.max(0, Math.round(down < 0 ? box.scrollTop : box.scrollHeight - height - box.scrollTop)),
        };
    },
});
