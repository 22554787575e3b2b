// Functions that find and select text; see target.js.
Object.assign(lango, {
    // Returns the range of a text below an element. Any white space in the document matches a space in the text.
    textRange(root, text) {
        const words = text.trim().split(/\s+/).join(' ');
        if (!words) return null;
        const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
        let found = '';
        const places = [];
        let block = null;
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            const parent = node.parentElement;
            if (!parent?.checkVisibility({ visibilityProperty: true }) || parent.closest('script, style')) continue;
            let own = parent;
            while (own !== root && getComputedStyle(own).display === 'inline') own = own.parentElement;
            const isApart = block !== null && own !== block;
            block = own;
            for (let index = 0; index < node.length; index++) {
                const isGap = /\s/.test(node.data[index]);
                if (isApart && index === 0 && !found.endsWith(' ')) { found += ' '; places.push([node, 0]); }
                if (isGap && (!found || found.endsWith(' '))) continue;
                found += isGap ? ' ' : node.data[index];
                places.push([node, index]);
            }
        }
        const at = found.indexOf(words);
        if (at < 0) return null;
        const [[first, start], [last, end]] = [places[at], places[at + words.length - 1]];
        const range = document.createRange();
        range.setStart(first, start);
        range.setEnd(last, end + 1);
        return range;
    },

    hasText(text) {
        return lango.textRange(this, text) !== null;
    },

    // Scrolls a text into view and returns its start and end, in coordinates of the frame's window.
    findText(text) {
        const range = lango.textRange(this, text);
        if (!range) return null;
        range.startContainer.parentElement.scrollIntoView({ block: 'nearest', behavior: 'instant' });
        const boxes = [...range.getClientRects()].filter(box => box.width > 0 && box.height > 0);
        if (!boxes.length) return null;
        const [first, last] = [boxes[0], boxes[boxes.length - 1]];
        return { start: [first.left, (first.top + first.bottom) / 2], end: [last.right, (last.top + last.bottom) / 2] };
    },

    // Sets the selection to the text if the mouse selected something else, and returns the selected text.
    markText(text) {
        const plain = words => words.trim().split(/\s+/).join(' ');
        const selection = getSelection();
        const range = lango.textRange(this, text);
        if (range && plain(selection.toString()) !== plain(text)) {
            selection.removeAllRanges();
            selection.addRange(range);
        }
        return selection.toString().slice(0, 2000);
    },
});
