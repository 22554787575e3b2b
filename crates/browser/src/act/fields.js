// Functions for form fields; see target.js.
Object.assign(lango, {
    // Returns the kind of the field and its content.
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

    // Focuses the field, and selects its content or puts the cursor at its end. Returns whether it has the focus.
    focus(selects) {
        this.focus({ preventScroll: true });
        if (selects === null || selects === undefined) return lango.hasFocus(this);
        if (typeof this.select === 'function' && this.localName !== 'select') {
            if (selects) this.select();
            else if (typeof this.setSelectionRange === 'function') {
                try { this.setSelectionRange(this.value.length, this.value.length); } catch { /* for example, a number field */ }
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

    // Types keys into the focused element of the element's own document, from index `start` on, for at most three
    // seconds. The check, the events and the insertion of a key happen in one task: no script can move the focus in
    // between, and nothing reaches another frame. Only the key events differ from those of a real keyboard.
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

    // Inserts a text in one step; an empty text deletes the selection.
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

    // Returns the focused element in the document of an element; the body if nothing is focused.
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

    // Sets the value of a field that cannot be typed into, such as a date, like the field's own picker does.
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

    // Selects options of a native list. If one does not exist or is disabled, selects none and returns it with the
    // names of the available options.
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

    // Finds an option of a custom list by its text.
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

    // Returns whether a checkbox is checked; null for other elements.
    checked() {
        if (this.localName === 'input' && ['checkbox', 'radio'].includes(this.type)) return this.checked;
        const state = this.getAttribute('aria-checked') ?? this.getAttribute('aria-pressed') ?? this.getAttribute('aria-selected');
        return state === null ? null : state === 'true';
    },

    isFileInput() {
        return this.localName === 'input' && this.type === 'file';
    },

    // Scrolls by a number of screens. Returns the distance scrolled and the distance left; null if nothing scrolls.
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
        // Chooses what to scroll: the page, or the element in its middle, or the nearest scrollable box around the
        // element.
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
