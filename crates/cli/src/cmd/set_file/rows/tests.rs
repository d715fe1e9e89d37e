//! Files that are taken, files that are refused and where; and random files, against the writer and the reader of the
//! crate csv.

use proptest::prelude::*;

use super::*;

fn cells(text: &str, breaks: LineBreaks) -> CsvRead<Vec<Vec<String>>> {
    let rows = rows(text.as_bytes(), breaks)?;
    Ok(rows
        .into_iter()
        .map(|row| row.cells.iter().map(|cell| cell.to_string()).collect())
        .collect())
}

#[test]
fn cells_are_read_as_spreadsheets_write_them() {
    for (text, want) in [
        ("", &[][..]),
        ("a,b", &[&["a", "b"][..]]),
        ("a,b\n1,2\n", &[&["a", "b"], &["1", "2"]]),
        ("a,b\r\n1,\r\n\r\n,2", &[&["a", "b"], &["1", ""], &["", "2"]]),
        ("a,b\r1,2\r", &[&["a", "b"], &["1", "2"]]),
        ("a,b\n\"x, y\",\"5\"\" wide\"\n", &[&["a", "b"], &["x, y", "5\" wide"]]),
        ("\"a\",b\n\"\",\n", &[&["a", "b"], &["", ""]]),
        ("a\n 1 \n", &[&["a"], &[" 1 "]]),
    ] {
        assert_eq!(cells(text, LineBreaks::Refused).unwrap(), want, "{text:?}");
    }
    let both = "a,b\n\"x\ny\",2\n";
    assert_eq!(cells(both, LineBreaks::Taken).unwrap(), [["a", "b"], ["x\ny", "2"]]);
}

#[test]
fn a_refused_cell_is_named_by_line_and_column_and_never_shown() {
    for (text, breaks, want) in [
        (
            "id,pass\na,\"secret\nb,secret\n",
            LineBreaks::Refused,
            "line 2, column 2 ('pass'): the quote that opens here is never closed",
        ),
        (
            "id,pass\na,\"secret\nb,secret\n",
            LineBreaks::Taken,
            "line 2, column 2 ('pass'): the quote that opens here is never closed",
        ),
        (
            "id,pass\na,\"secret\nb,secret\"\n",
            LineBreaks::Refused,
            "line 2, column 2 ('pass'): the quote that opens here is closed in a later line",
        ),
        (
            "id,pass\na,x\nb,\"secret\" secret\n",
            LineBreaks::Refused,
            "line 3, column 2 ('pass'): something follows the quote that closes the cell",
        ),
        (
            "id,pass\na,sec\"ret\n",
            LineBreaks::Refused,
            "line 2, column 2 ('pass'): a quote is inside a cell that does not begin with one",
        ),
        (
            "id,\"pass\n",
            LineBreaks::Refused,
            "line 1, column 2: the quote that opens here is never",
        ),
        ("id,pass\na\n", LineBreaks::Refused, "line 2: it has 1 column, and the header has 2"),
        (
            "id,pass\na,\"x\ny\"\nb,secret,secret\n",
            LineBreaks::Taken,
            "line 4: it has 3 columns, and the header has 2",
        ),
    ] {
        let bad = cells(text, breaks).unwrap_err();
        assert!(bad.sentence.starts_with(want), "{text:?}: {}", bad.sentence);
        assert!(!format!("{bad:?}").contains("secret"), "{bad:?}");
        assert!(!bad.hint.is_empty(), "{text:?}");
    }
    let latin = rows(b"id\n\xe4\n", LineBreaks::Refused).unwrap_err();
    assert_eq!(latin.sentence, "line 2: it is not UTF-8");
}

fn written(table: &[Vec<String>], style: csv::QuoteStyle) -> String {
    let mut writer = csv::WriterBuilder::new().quote_style(style).from_writer(Vec::new());
    table.iter().for_each(|row| writer.write_record(row).unwrap());
    String::from_utf8(writer.into_inner().unwrap()).unwrap()
}

/// Tables of one to four columns whose cells have all that could be misread.
fn table() -> impl Strategy<Value = Vec<Vec<String>>> {
    (1usize..5).prop_flat_map(|columns| {
        let cell = "[a-c\", \n\rä']{0,6}";
        prop::collection::vec(prop::collection::vec(cell, columns), 1..6)
    })
}

proptest! {
    #[test]
    fn what_a_writer_of_csv_wrote_is_read_the_same(table in table(), always in any::<bool>()) {
        let style = if always { csv::QuoteStyle::Always } else { csv::QuoteStyle::Necessary };
        prop_assert_eq!(cells(&written(&table, style), LineBreaks::Taken), Ok(table));
    }

    #[test]
    fn one_quote_less_or_an_end_within_a_cell_is_refused(
        table in table(),
        at in any::<prop::sample::Index>(),
    ) {
        let text = written(&table, csv::QuoteStyle::Always);
        let quotes: Vec<usize> = text.match_indices('"').map(|(at, _)| at).collect();
        let lost = *at.get(&quotes);
        let without = format!("{}{}", &text[..lost], &text[lost + 1..]);
        for breaks in [LineBreaks::Taken, LineBreaks::Refused] {
            prop_assert!(cells(&without, breaks).is_err(), "{:?}", without);
        }
        // A cut behind an odd number of quotes lies within a cell.
        let cut = *at.get(&quotes) + 1;
        if text[..cut].matches('"').count() % 2 == 1 {
            prop_assert!(cells(&text[..cut], LineBreaks::Taken).is_err(), "{:?}", &text[..cut]);
        }
    }

    #[test]
    fn what_is_taken_of_any_text_is_what_another_reader_reads(text in "[ab\",\n\r]{0,24}") {
        if let Ok(ours) = cells(&text, LineBreaks::Taken) {
            let mut other = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
            let theirs: Vec<Vec<String>> = other
                .records()
                .map(|row| row.unwrap().iter().map(str::to_owned).collect())
                .collect();
            prop_assert_eq!(ours, theirs);
        }
    }
}
