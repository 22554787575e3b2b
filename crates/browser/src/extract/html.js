// Reads the content of a page that is too large to be captured; see target.js.
Object.assign(lango, {
    // Returns the start of the visible content as HTML, up to about `limit` characters, with the links as only
    // attributes.
    html(limit) {
        const parts = [];
        let left = limit;
        const add = text => { parts.push(text); left -= text.length; };
        const escape = text => text.slice(0, left).replace(/&/g, '&amp;').replace(/</g, '&lt;');
        const write = (element, depth) => {
            const tag = element.localName;
            if (/^(script|style|noscript|template|svg|canvas|select)$/.test(tag)) return;
            if (tag !== 'head' && element.checkVisibility && !element.checkVisibility() && !element.closest('head')) return;
            add(`<${tag}`);
            if (element.hasAttribute('href')) add(` href="${String(element.href).replace(/"/g, '&quot;')}"`);
            add('>');
            for (const child of (element.shadowRoot ?? element).childNodes) {
                if (left <= 0) break;
                if (child.nodeType === 3) add(escape(child.data));
                else if (child.nodeType === 1 && depth < 300) write(child, depth + 1);
            }
            add(`</${tag}>`);
        };
        write(this, 0);
        return parts.join('');
    },
});
