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

    // Types keys into whatever has the focus in the element's own document, one task each, from number `start` on, for
    // three seconds at most. Check, events and insertion of a key are one task in that document: no script can move the
    // focus in between, and nothing reaches another frame. The events of the keys are the only ones that a page could tell
    // from those of a keyboard.
    async typeKeys(keys, start, isField) {
        const deadline = performance.now() + 3000;
        for (let at = start; at < keys.length; at++) {
            const problem = lango.focusProblem(this, isField);
            if (problem || performance.now() > deadline) return { typed: at, problem };
            lango.typeKey(this, keys[at]);
            if (at + 1 < keys.length) await new Promise(resolve => setTimeout(resolve));
        }
        return { typed: keys.length, problem: null };
    },

    typeKey(element, [key, code, keyCode]) {
        const send = (type, codes) => lango.focused(element).dispatchEvent(new KeyboardEvent(type, {
            key, code, ...codes, view: window, bubbles: true, cancelable: true, composed: true,
        }));
        const letter = key.codePointAt(0);
        if (send('keydown', { keyCode }) && send('keypress', { keyCode: letter, charCode: letter })) lango.insert(element, key);
        send('keyup', { keyCode });
    },

    // Enters a text as a whole, or deletes what is selected if it is empty.
    typeText(text, isField) {
        const problem = lango.focusProblem(this, isField);
        if (!problem) lango.insert(this, text);
        return { typed: problem ? 0 : 1, problem };
    },

    insert(element, text) {
        const target = lango.focused(element);
        const isField = ['input', 'textarea'].includes(target.localName) && !target.readOnly && !target.disabled;
        if (!isField && !target.isContentEditable) return;
        const inputType = text ? 'insertText' : 'deleteContentForward';
        const init = { inputType, data: text || null, bubbles: true, cancelable: true, composed: true };
        if (!target.dispatchEvent(new InputEvent('beforeinput', init))) return;
        document.execCommand(text ? 'insertText' : 'forwardDelete', false, text);
    },

    // What has the focus in the document of an element: its body if nothing has.
    focused(element) {
        const root = element.isConnected ? element.getRootNode() : document;
        let focused = root.activeElement ?? document.activeElement ?? document.body ?? document.documentElement;
        while (focused.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement;
        return focused;
    },

    focusProblem(element, isField) {
        const focused = lango.focused(element);
        if (['iframe', 'frame', 'object', 'embed', 'fencedframe'].includes(focused.localName)) return 'frame';
        const isNothing = focused === document.body || focused === document.documentElement;
        return isField && isNothing && !focused.isContentEditable ? 'nothing' : null;
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
