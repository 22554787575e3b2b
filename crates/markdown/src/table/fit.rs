//! Distributes the columns of the terminal to the columns of a table.

/// The width that every column gets, if its cells are that wide.
const MIN_COLUMN: usize = 6;

/// Words up to this length, such as numbers and headings, are never broken. Longer ones are mostly paths and addresses.
const MAX_UNBROKEN: usize = 12;

/// What a column would like to have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ColumnNeed {
    /// The width of its widest cell.
    pub width: usize,
    /// The width of the longest word in it.
    pub longest_word: usize,
}

/// Returns the widths of the columns, together at most `available`. If not every cell fits on one line, narrow columns
/// keep their width and the wide ones share what is left. No word is broken, if that is possible. Returns `None` if
/// a column would be too narrow to be read, or a short word would be broken.
pub(super) fn column_widths(needs: &[ColumnNeed], available: usize) -> Option<Vec<usize>> {
    let narrow: Vec<usize> = needs
        .iter()
        .map(|need| need.width.min(MIN_COLUMN))
        .collect();
    let unbroken = |max_word: usize| -> Vec<usize> {
        let words = needs.iter().map(|need| need.longest_word.min(max_word));
        words
            .zip(&narrow)
            .map(|(word, width)| word.max(*width))
            .collect()
    };
    [unbroken(usize::MAX), unbroken(MAX_UNBROKEN)]
        .into_iter()
        .find(|floors| floors.iter().sum::<usize>() <= available)
        .map(|floors| share(needs, &floors, available))
}

/// Raises a common limit until the columns, each at least its floor and at most its need, take what is available.
fn share(needs: &[ColumnNeed], floors: &[usize], available: usize) -> Vec<usize> {
    let widths = |limit: usize| -> Vec<usize> {
        let column = |(need, floor): (&ColumnNeed, &usize)| need.width.min(limit).max(*floor);
        needs.iter().zip(floors).map(column).collect()
    };
    let fits = |limit: usize| widths(limit).iter().sum::<usize>() <= available;
    let (mut low, mut high) = (0, available);
    while low < high {
        let middle = (low + high).div_ceil(2);
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    let mut widths = widths(low);
    // The limit rounds down: the first columns that need it get the rest.
    let mut left = available.saturating_sub(widths.iter().sum());
    for (width, need) in widths.iter_mut().zip(needs) {
        if left > 0 && *width < need.width {
            *width += 1;
            left -= 1;
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn need(width: usize, longest_word: usize) -> ColumnNeed {
        ColumnNeed {
            width,
            longest_word,
        }
    }

    #[test]
    fn a_number_is_never_broken_but_an_address_is() {
        let prices = [need(11, 11), need(30, 12), need(6, 6)];
        assert_eq!(column_widths(&prices, 28), None);
        assert_eq!(column_widths(&prices, 29), Some(vec![11, 12, 6]));
        let addresses = [need(6, 6), need(60, 60)];
        assert_eq!(column_widths(&addresses, 30), Some(vec![6, 24]));
    }
}
