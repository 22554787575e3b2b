//! Ten pages like those of real sites: deep nesting, long class names, data attributes, icons, scripts, trackers. Their
//! texts are generated deterministically.

use std::fmt::Write;

/// The names of the pages.
#[allow(dead_code, reason = "only the benchmark uses all of them")]
pub(crate) const NAMES: [&str; 10] = [
    "news",
    "article",
    "results",
    "products",
    "product",
    "checkout",
    "table",
    "dashboard",
    "docs",
    "mail",
];

const WORDS: [&str; 48] = [
    "river", "market", "signal", "copper", "winter", "engine", "garden", "bridge", "policy",
    "harbour", "median", "forest", "launch", "record", "valley", "carbon", "office", "summit",
    "travel", "budget", "museum", "planet", "silver", "window", "report", "season", "worker",
    "export", "border", "kitchen", "letter", "motion", "number", "pocket", "reason", "school",
    "studio", "theory", "ticket", "upland", "vendor", "warden", "yellow", "zenith", "anchor",
    "basket", "candle", "domain",
];

const ICON: &str = "<svg class=\"icon icon--16\" aria-hidden=\"true\" focusable=\"false\" viewBox=\"0 0 16 16\" width=\"16\" height=\"16\"><path d=\"M8 1.3a6.7 6.7 0 1 0 0 13.4A6.7 6.7 0 0 0 8 1.3zm.7 10H7.3V7.3h1.4v4zm0-5.3H7.3V4.7h1.4V6z\" fill=\"currentColor\"/></svg>";

/// Returns words that depend on `seed`, the first one capitalized.
fn words(seed: usize, count: usize) -> String {
    let mut text = String::new();
    let mut state = seed as u64 * 2_654_435_761 + 12_345;
    for index in 0..count {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let word = WORDS[(state >> 33) as usize % WORDS.len()];
        match index {
            0 => text.push_str(&format!("{}{}", word[..1].to_uppercase(), &word[1..])),
            _ => text.push_str(&format!(" {word}")),
        }
    }
    text
}

fn sentences(seed: usize, count: usize) -> String {
    let sentence = |index| format!("{}. ", words(seed * 31 + index, 9 + (seed + index) % 9));
    (0..count).map(sentence).collect()
}

fn image(seed: usize, size: usize) -> String {
    format!(
        "<picture class=\"media__picture\"><source srcset=\"data:,{seed}-{size}w.webp 1x, data:,{seed}-{size}w@2x.webp 2x\" type=\"image/webp\"><img class=\"media__image lazy loaded\" loading=\"lazy\" decoding=\"async\" width=\"{size}\" height=\"{}\" src=\"data:,\" alt=\"{}\" data-src=\"/cdn/{seed}/{size}.jpg\" sizes=\"(min-width: 60em) 33vw, 100vw\"></picture>",
        size * 2 / 3,
        words(seed + 900, 4)
    )
}

/// Wraps a body in a page with a head, a header with navigation, and a footer.
fn shell(title: &str, body: &str) -> String {
    let mut html = format!(
        "<!doctype html><html lang=\"en\" class=\"no-js theme-light\" data-build=\"2026.11.3\"><head><meta charset=\"utf-8\"><title>{title}</title><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta property=\"og:site_name\" content=\"Example\"><style>"
    );
    for index in 0..120 {
        let _ = write!(
            html,
            ".component-{index}__element--modifier{{display:block;padding:{}px {}px;margin:0 0 {}px;font-size:{}rem;line-height:1.4;color:#222}}",
            index % 7,
            index % 11,
            index % 5,
            1 + index % 2
        );
    }
    html.push_str(
        "body{margin:0;font-family:sans-serif}.wrap{max-width:1100px;margin:0 auto}.visually-hidden{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}.row{display:flex;gap:12px;flex-wrap:wrap}.col{flex:1;min-width:240px}.btn{cursor:pointer}</style>",
    );
    let _ = write!(
        html,
        "<script>window.__STATE__={:?};</script></head><body>",
        sentences(7, 120)
    );
    html.push_str("<a class=\"visually-hidden\" href=\"#main\">Skip to content</a><header class=\"site-header site-header--sticky\" data-component=\"header\"><div class=\"wrap row\"><a class=\"site-header__logo\" href=\"/\" aria-label=\"Example home\">");
    html.push_str(ICON);
    html.push_str("</a><form class=\"site-header__search\" role=\"search\" action=\"/search\"><label class=\"visually-hidden\" for=\"q\">Search</label><input id=\"q\" name=\"q\" type=\"search\" placeholder=\"Search\" autocomplete=\"off\"><button class=\"btn btn--icon\" type=\"submit\" aria-label=\"Search\">");
    html.push_str(ICON);
    html.push_str("</button></form></div><nav class=\"site-nav\" aria-label=\"Main\"><ul class=\"site-nav__list row\">");
    for index in 0..9 {
        let _ = write!(
            html,
            "<li class=\"site-nav__item site-nav__item--{index}\"><a class=\"site-nav__link js-track\" data-track=\"nav:{index}\" href=\"/section/{index}\"><span class=\"site-nav__label\">{}</span></a></li>",
            words(index + 50, 1)
        );
    }
    let _ = write!(
        html,
        "</ul></nav></header><main id=\"main\" class=\"wrap layout layout--two\">{body}</main><footer class=\"site-footer\"><div class=\"wrap row\">"
    );
    for column in 0..4 {
        let _ = write!(
            html,
            "<div class=\"site-footer__column col\"><h2 class=\"site-footer__title\">{}</h2><ul>",
            words(column + 70, 1)
        );
        for index in 0..7 {
            let _ = write!(
                html,
                "<li><a href=\"/about/{column}/{index}\">{}</a></li>",
                words(column * 10 + index + 300, 2)
            );
        }
        html.push_str("</ul></div>");
    }
    html.push_str("</div><p class=\"site-footer__legal\">Copyright 2026 Example. All rights reserved.</p></footer><script>addEventListener('click', event => event.target.closest('[data-track]'))</script></body></html>");
    html
}

/// Returns the HTML of a page.
pub(crate) fn page(name: &str) -> Option<String> {
    Some(match name {
        "news" => shell("The Example Times", &news()),
        "article" => shell(&words(11, 8), &article()),
        "results" => shell("copper bridge - Example Search", &results()),
        "products" => shell("Lamps | Example Store", &products()),
        "product" => shell("Desk lamp Zenith | Example Store", &product()),
        "checkout" => shell("Checkout | Example Store", &checkout()),
        "table" => shell("Exports by country", &table()),
        "dashboard" => shell("Dashboard", &dashboard()),
        "docs" => shell("Configuration - Example Docs", &docs()),
        "mail" => shell("Inbox (12) - Example Mail", &mail()),
        _ => return None,
    })
}

fn news() -> String {
    let mut html = String::new();
    for section in 0..8 {
        let _ = write!(
            html,
            "<section class=\"strip strip--{section}\" data-region=\"{section}\"><h2 class=\"strip__title\"><a href=\"/section/{section}\">{}</a></h2><div class=\"strip__grid row\">",
            words(section + 20, 2)
        );
        for card in 0..9 {
            let seed = section * 100 + card;
            let _ = write!(
                html,
                "<article class=\"card card--medium js-card\" data-id=\"{seed}\"><div class=\"card__media\">{}</div><div class=\"card__body\"><h3 class=\"card__headline\"><a class=\"card__link\" href=\"/2026/11/{seed}/{}\">{}</a></h3><p class=\"card__summary\">{}</p><div class=\"card__meta\"><time datetime=\"2026-11-16\">{} min ago</time><span class=\"card__kicker\">{}</span></div><button class=\"btn btn--ghost card__save\" type=\"button\" aria-label=\"Save for later\">{ICON}</button></div></article>",
                image(seed, 320),
                words(seed, 3).to_lowercase().replace(' ', "-"),
                words(seed, 9),
                sentences(seed, 1),
                seed % 60,
                words(seed + 5, 1)
            );
        }
        html.push_str("</div></section>");
    }
    html
}

fn article() -> String {
    let mut html = format!(
        "<article class=\"story\"><header><h1>{}</h1><p class=\"story__byline\">By <a href=\"/by/ada\">Ada Example</a>, <time datetime=\"2026-11-15\">15 November 2026</time></p></header>",
        words(11, 8)
    );
    for paragraph in 0..40 {
        if paragraph % 8 == 4 {
            let _ = write!(
                html,
                "<h2>{}</h2><figure>{}<figcaption>{}</figcaption></figure>",
                words(paragraph, 4),
                image(paragraph, 640),
                words(paragraph, 7)
            );
        }
        let _ = write!(
            html,
            "<p class=\"story__text\">{} <a href=\"/topic/{paragraph}\">{}</a> {}</p>",
            sentences(paragraph, 3),
            words(paragraph + 400, 2),
            sentences(paragraph + 60, 3)
        );
    }
    html.push_str("</article><aside class=\"related\" aria-label=\"Related\"><ul>");
    for index in 0..12 {
        let _ = write!(
            html,
            "<li>{}<a href=\"/2026/r{index}\">{}</a></li>",
            image(index + 30, 120),
            words(index + 800, 7)
        );
    }
    html.push_str("</ul></aside>");
    html
}

fn results() -> String {
    let mut html = String::from(
        "<p class=\"stats\">About 1,240 results (0.31 seconds)</p><ol class=\"results\">",
    );
    for index in 0..20 {
        let _ = write!(
            html,
            "<li class=\"result js-result\" data-rank=\"{index}\"><div class=\"result__head\"><cite>https://site{index}.example › {}</cite><a class=\"result__link\" href=\"https://site{index}.example/{}\" data-ping=\"/ping?r={index}&amp;token=c2Vzc2lvbg\"><h3>{}</h3></a></div><div class=\"result__text\"><span>{}</span></div><div class=\"result__more\"><button class=\"btn\" aria-label=\"About this result\">{ICON}</button></div></li>",
            words(index, 1).to_lowercase(),
            words(index + 40, 3).to_lowercase().replace(' ', "/"),
            words(index + 40, 7),
            sentences(index, 2)
        );
    }
    html.push_str("</ol><nav aria-label=\"Pages\" class=\"row\">");
    for index in 1..=10 {
        let _ = write!(
            html,
            "<a href=\"/search?q=copper&amp;page={index}\">{index}</a>"
        );
    }
    html.push_str("</nav>");
    html
}

fn products() -> String {
    let mut html = String::from(
        "<h1>Lamps</h1><div class=\"row\"><aside class=\"filters\" aria-label=\"Filters\">",
    );
    for group in 0..5 {
        let _ = write!(html, "<fieldset><legend>{}</legend>", words(group + 15, 1));
        for option in 0..6 {
            let _ = write!(
                html,
                "<label class=\"check\"><input type=\"checkbox\" name=\"f{group}\" value=\"{option}\"><span class=\"check__label\">{} <small>({})</small></span></label>",
                words(group * 6 + option + 100, 1),
                option * 7 + 3
            );
        }
        html.push_str("</fieldset>");
    }
    html.push_str("</aside><div class=\"grid col\"><label>Sort <select name=\"sort\"><option>Relevance<option>Price, low first<option>Price, high first<option>Newest</select></label><ul class=\"tiles row\">");
    for index in 0..60 {
        let _ = write!(
            html,
            "<li class=\"tile\" data-sku=\"{index}\"><div class=\"tile__media\"><a href=\"/p/{index}\" tabindex=\"-1\" aria-hidden=\"true\">{}</a><span class=\"badge\">-{}%</span></div><div class=\"tile__body\"><a class=\"tile__name\" href=\"/p/{index}\">{}</a><div class=\"rating\" role=\"img\" aria-label=\"{}.5 of 5 stars\">{ICON}{ICON}{ICON}{ICON}{ICON}</div><span class=\"price\">€{}.99</span><button class=\"btn btn--primary\" data-track=\"add:{index}\">Add to cart</button></div></li>",
            image(index, 240),
            index % 30 + 5,
            words(index + 200, 4),
            index % 4,
            20 + index * 3
        );
    }
    html.push_str("</ul></div></div>");
    html
}

fn product() -> String {
    let mut html = format!(
        "<div class=\"row\"><div class=\"gallery col\">{}</div><div class=\"buy col\"><h1>Desk lamp Zenith</h1><span class=\"price\">€89.00</span><p>{}</p><fieldset><legend>Colour</legend>",
        image(1, 600),
        sentences(3, 2)
    );
    for colour in ["Black", "Copper", "White"] {
        let _ = write!(
            html,
            "<label class=\"swatch\"><input class=\"visually-hidden\" type=\"radio\" name=\"colour\" value=\"{colour}\"><span style=\"background:{colour};cursor:pointer\">{colour}</span></label>"
        );
    }
    html.push_str("</fieldset><label>Quantity <input type=\"number\" min=\"1\" max=\"9\" value=\"1\"></label><button class=\"btn\">Add to cart</button><button class=\"btn\" aria-pressed=\"false\">Remember</button></div></div><div role=\"tablist\"><button role=\"tab\" aria-selected=\"true\">Details</button><button role=\"tab\" aria-selected=\"false\">Reviews (212)</button></div><table class=\"specs\">");
    for index in 0..18 {
        let _ = write!(
            html,
            "<tr><th scope=\"row\">{}</th><td>{}</td></tr>",
            words(index + 10, 1),
            words(index + 30, 3)
        );
    }
    html.push_str("</table><section aria-label=\"Reviews\">");
    for index in 0..30 {
        let _ = write!(
            html,
            "<div class=\"review\" itemprop=\"review\"><div class=\"review__head\"><strong>{}</strong><span class=\"review__stars\" role=\"img\" aria-label=\"{} of 5 stars\">{ICON}</span></div><p class=\"review__text\">{}</p><div class=\"review__foot\"><span class=\"btn\" onclick=\"this.textContent='Thanks'\">Helpful ({})</span></div></div>",
            words(index, 2),
            index % 5 + 1,
            sentences(index + 9, 3),
            index
        );
    }
    html.push_str("</section>");
    html
}

fn checkout() -> String {
    let mut html = String::from(
        "<h1>Checkout</h1><ol class=\"steps row\"><li aria-current=\"step\">Address<li>Payment<li>Review</ol><form class=\"form\" method=\"post\" novalidate>",
    );
    for (name, label, kind) in [
        ("email", "Email address", "email"),
        ("first", "First name", "text"),
        ("last", "Last name", "text"),
        ("street", "Street and number", "text"),
        ("zip", "Postcode", "text"),
        ("city", "City", "text"),
        ("phone", "Phone (optional)", "tel"),
        ("card", "Card number", "text"),
        ("cvc", "Security code", "password"),
    ] {
        let _ = write!(
            html,
            "<div class=\"field field--{name}\" data-field=\"{name}\"><div class=\"field__row\"><label class=\"field__label\" for=\"{name}\">{label}</label><div class=\"field__control\"><input class=\"field__input\" id=\"{name}\" name=\"{name}\" type=\"{kind}\" required aria-describedby=\"{name}-hint\"><span class=\"field__icon\">{ICON}</span></div><p id=\"{name}-hint\" class=\"field__hint\">{}</p></div></div>",
            words(label.len(), 5)
        );
    }
    html.push_str("<div class=\"field\"><label for=\"country\">Country</label><select id=\"country\" name=\"country\">");
    for index in 0..195 {
        let _ = write!(
            html,
            "<option value=\"C{index}\"{}>{}</option>",
            if index == 43 { " selected" } else { "" },
            words(index + 1000, 2)
        );
    }
    html.push_str("</select></div><label><input type=\"checkbox\" name=\"news\"> Send me offers</label><label><input type=\"checkbox\" name=\"terms\" required> I accept the <a href=\"/terms\">terms</a></label><button class=\"btn btn--primary\" type=\"submit\" disabled>Continue to payment</button></form><aside class=\"summary\" aria-label=\"Your order\"><h2>Your order</h2><ul>");
    for index in 0..6 {
        let _ = write!(
            html,
            "<li>{} <span>{}</span> <span>€{}.00</span> <button aria-label=\"Remove {}\">{ICON}</button></li>",
            image(index, 60),
            words(index, 3),
            index * 9 + 10,
            words(index, 3)
        );
    }
    html.push_str("</ul><p><strong>Total €195.00</strong></p></aside>");
    html
}

fn table() -> String {
    let mut html = String::from(
        "<h1>Exports by country</h1><label>Filter <input type=\"text\"></label><table class=\"data\"><caption>Exports, million euros</caption><thead><tr><th><button class=\"sort\">Country</button></th><th>Region</th><th>2023</th><th>2024</th><th>2025</th><th>Change</th><th></th></tr></thead><tbody>",
    );
    for index in 0..300 {
        let _ = write!(
            html,
            "<tr class=\"data__row\" data-key=\"{index}\"><td class=\"data__cell\"><a href=\"/country/{index}\">{}</a></td><td class=\"data__cell\">{}</td><td class=\"data__cell num\">{}</td><td class=\"data__cell num\">{}</td><td class=\"data__cell num\">{}</td><td class=\"data__cell\"><span class=\"up\">+{}%</span></td><td class=\"data__cell\"><button class=\"btn btn--icon\" aria-label=\"More\">{ICON}</button></td></tr>",
            words(index + 600, 2),
            words(index % 6, 1),
            index * 37 % 9000,
            index * 53 % 9000,
            index * 71 % 9000,
            index % 19
        );
    }
    html.push_str("</tbody></table>");
    html
}

fn dashboard() -> String {
    let mut html =
        String::from("<div id=\"root\"><div class=\"app css-1k2j3h\"><div class=\"row\">");
    for index in 0..6 {
        let _ = write!(
            html,
            "<div class=\"css-x{index}y MuiPaper-root MuiCard-root\" data-testid=\"kpi-{index}\"><div class=\"css-{index}a\"><div class=\"css-{index}b\"><span class=\"css-{index}c\">{}</span></div><div class=\"css-{index}d\"><span class=\"css-{index}e\">{}</span></div></div></div>",
            words(index + 33, 2),
            index * 1234 % 9999
        );
    }
    html.push_str("</div><svg class=\"chart\" width=\"800\" height=\"240\" role=\"img\" aria-label=\"Visits per day\">");
    for index in 0..90 {
        let _ = write!(
            html,
            "<rect class=\"bar\" x=\"{}\" y=\"{}\" width=\"7\" height=\"{}\" fill=\"#36c\"/>",
            index * 9,
            240 - index * 17 % 200,
            index * 17 % 200
        );
    }
    html.push_str("</svg><div class=\"tabs\">");
    for name in ["Day", "Week", "Month"] {
        let _ = write!(
            html,
            "<div class=\"tab css-9\" style=\"display:inline-block;cursor:pointer\" onclick=\"this.classList.add('on')\"><div class=\"css-10\"><span>{name}</span></div></div>"
        );
    }
    html.push_str("</div><div class=\"list css-44\" style=\"height:300px;overflow:auto\">");
    for index in 0..200 {
        let _ = write!(
            html,
            "<div class=\"css-70 list-row\" data-index=\"{index}\" style=\"display:flex\"><div class=\"css-71\"><div class=\"css-72\"><span>{}</span></div></div><div class=\"css-73\"><span>{}</span></div><div class=\"css-74\" onclick=\"1\" style=\"cursor:pointer\"><div class=\"css-75\">{ICON}</div><span>Open</span></div></div>",
            words(index + 77, 3),
            index * 3
        );
    }
    html.push_str("</div></div></div>");
    html
}

fn docs() -> String {
    let mut html =
        String::from("<div class=\"row\"><nav class=\"sidebar\" aria-label=\"Chapters\"><ul>");
    for chapter in 0..12 {
        let _ = write!(
            html,
            "<li><a href=\"/docs/{chapter}\"{}>{}</a><ul>",
            if chapter == 3 {
                " aria-current=\"page\""
            } else {
                ""
            },
            words(chapter + 500, 2)
        );
        for page in 0..8 {
            let _ = write!(
                html,
                "<li><a href=\"/docs/{chapter}/{page}\">{}</a></li>",
                words(chapter * 8 + page + 520, 2)
            );
        }
        html.push_str("</ul></li>");
    }
    html.push_str("</ul></nav><article class=\"col\"><h1>Configuration</h1>");
    for section in 0..14 {
        let _ = write!(
            html,
            "<h2 id=\"s{section}\">{}<a class=\"anchor\" href=\"#s{section}\" aria-label=\"Link to this section\">#</a></h2><p>{}</p><pre><code class=\"language-toml\">[{}]\n{} = {section}\n</code></pre><button class=\"copy\">Copy</button><p>{} <code>{}</code>.</p>",
            words(section + 60, 3),
            sentences(section, 3),
            words(section, 1).to_lowercase(),
            words(section + 1, 1).to_lowercase(),
            sentences(section + 40, 2),
            words(section, 1)
        );
    }
    html.push_str("</article></div>");
    html
}

fn mail() -> String {
    let mut html = String::from(
        "<div class=\"row\"><nav aria-label=\"Folders\"><div class=\"btn compose\" role=\"button\" tabindex=\"0\">Compose</div>",
    );
    for (index, name) in ["Inbox", "Starred", "Sent", "Drafts", "Spam", "Trash"]
        .iter()
        .enumerate()
    {
        let _ = write!(
            html,
            "<div class=\"folder\" role=\"link\" tabindex=\"0\" data-folder=\"{index}\"><span>{name}</span><span class=\"count\">{}</span></div>",
            index * 4
        );
    }
    html.push_str("</nav><table class=\"mails col\" role=\"grid\"><tbody>");
    for index in 0..50 {
        let _ = write!(
            html,
            "<tr role=\"row\" class=\"mail{}\" style=\"cursor:pointer\" onclick=\"1\" data-thread=\"{index}\"><td role=\"gridcell\"><div role=\"checkbox\" aria-checked=\"false\" tabindex=\"-1\" aria-label=\"Select\" style=\"width:16px;height:16px\"></div></td><td role=\"gridcell\"><span class=\"star\" role=\"button\" aria-label=\"Not starred\" tabindex=\"-1\">{ICON}</span></td><td role=\"gridcell\"><span class=\"from\">{}</span></td><td role=\"gridcell\"><div class=\"subject\"><span class=\"bold\">{}</span><span class=\"snippet\"> - {}</span></div></td><td role=\"gridcell\"><span title=\"Mon, 16 Nov 2026\">{}:{:02}</span></td></tr>",
            if index < 12 { " unread" } else { "" },
            words(index, 2),
            words(index + 90, 5),
            sentences(index, 1),
            index % 12 + 1,
            index * 7 % 60
        );
    }
    html.push_str("</tbody></table></div>");
    html
}
