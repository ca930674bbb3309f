//! Columns that line up on a terminal, where a Korean syllable is two columns wide.
//!
//! Architecture invariant: pure.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How wide a screen may be expected to be.
pub const SCREEN: usize = 80;

/// How many columns a text takes.
pub fn width(text: &str) -> usize {
    text.width()
}

/// The text, filled up with blanks behind it.
pub fn left(text: &str, columns: usize) -> String {
    format!("{text}{}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The text, filled up with blanks before it.
pub fn right(text: &str, columns: usize) -> String {
    format!("{}{text}", " ".repeat(columns.saturating_sub(width(text))))
}

/// The text, cut so that it takes no more than that; an ellipsis says so.
pub fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let (mut cut, mut taken) = (String::new(), 1);
    for c in text.chars() {
        taken += c.width().unwrap_or(0);
        if taken > columns {
            break;
        }
        cut.push(c);
    }
    cut + "…"
}

/// The text in lines of no more columns, broken between words; a word that is longer stays whole.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is one");
        if line.is_empty() {
            line.push_str(word);
        } else if width(line) + 1 + width(word) <= columns {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

/// A table: its first row is the head; the columns that hold numbers stand to the right.
pub fn table(rows: &[Vec<String>], numbers: &[usize]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widest =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(widest).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells =
            cells.map(|(i, (cell, width))| if numbers.contains(&i) { right(cell, *width) } else { left(cell, *width) });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn korean_takes_two_columns_and_is_cut_between_syllables() {
        assert_eq!((width("도서관"), width("library"), width("도a")), (6, 7, 3));
        assert_eq!(format!("{}|", left("도서관", 8)), "도서관  |");
        assert_eq!(fit("도서관 목록", 11), "도서관 목록");
        assert_eq!(fit("도서관 목록", 10), "도서관 목…");
        assert_eq!(fit("도서관 목록", 9), "도서관 …");
        for columns in 1..12 {
            assert!(width(&fit("도서관 목록", columns)) <= columns);
        }
        assert_eq!(wrap("도서관 목록을 읽는 중", 10), ["도서관", "목록을", "읽는 중"]);
        assert_eq!(wrap("a longer-than-that b", 6), ["a", "longer-than-that", "b"]);
        let rows = [["who", "n"], ["김철수", "3"], ["lee", "12"]].map(|row| row.map(str::to_owned).to_vec());
        assert_eq!(table(&rows, &[1]), ["who      n", "김철수   3", "lee     12"]);
    }
}
