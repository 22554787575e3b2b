//! Where a line may be broken besides at spaces: between ideographs and other wide characters, as in Chinese and
//! Japanese, but not before closing or after opening punctuation.

use unicode_width::UnicodeWidthStr as _;

/// Characters that must not start a row.
const NO_START: &str =
    "、。，．：；！？）」』】〕》〉”’…—～・ー々ぁぃぅぇぉっゃゅょゎァィゥェォッャュョヮ)]}%,.!?:;";

/// Characters that must not end a row.
const NO_END: &str = "（「『【〔《〈“‘([{";

/// Returns whether a row may end between these graphemes, neither of which is a space.
pub(super) fn can_break_between(before: &str, after: &str) -> bool {
    if before.is_ascii() && after.is_ascii() {
        return false;
    }
    (before.width() > 1 || after.width() > 1)
        && !after.chars().next().is_some_and(|it| NO_START.contains(it))
        && !before.chars().next().is_some_and(|it| NO_END.contains(it))
}
