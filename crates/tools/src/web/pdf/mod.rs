//! The text of a PDF file, as far as it can be had without drawing it: simple and composite fonts with
//! their tables, deflated streams, object streams. No encryption, no layout, no scanned pages.
//!
//! Invariants:
//! - Any bytes at all give text or a reason; nothing panics, recurses without bound or grows without bound.
//! - Objects are found by prepared through the file, not by its table of contents, which is often broken.

mod object;
mod file;
mod font;
mod text;

use file::File;

/// The text of a PDF file, pages apart, or why there is none.
pub(super) fn read(bytes: &[u8]) -> Result<String, String> {
    let file = File::scan(bytes);
    if file.is_encrypted() {
        return Err("it is an encrypted PDF, whose text cannot be read".to_owned());
    }
    let pages = file.pages();
    if pages.is_empty() {
        return Err("it is a PDF in which no page can be found".to_owned());
    }
    let text = text::of_pages(&file, &pages);
    if text.trim().is_empty() {
        return Err(format!(
            "it is a PDF of {} pages without text; perhaps they are pictures",
            pages.len()
        ));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use proptest::prelude::*;

    use super::*;

    /// A file of objects numbered from 1; a stream's text stands behind its dictionary.
    fn pdf(objects: &[(&str, Option<Vec<u8>>)]) -> Vec<u8> {
        let mut file = b"%PDF-1.7\n".to_vec();
        for (index, (object, stream)) in objects.iter().enumerate() {
            write!(file, "{} 0 obj\n{object}\n", index + 1).unwrap();
            if let Some(stream) = stream {
                file.extend_from_slice(b"stream\n");
                file.extend_from_slice(stream);
                file.extend_from_slice(b"\nendstream\n");
            }
            file.extend_from_slice(b"endobj\n");
        }
        file.extend_from_slice(b"trailer << /Root 1 0 R >>\n%%EOF");
        file
    }

    fn deflated(text: &[u8]) -> Vec<u8> {
        let mut encoder =
            flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    const PAGE: &str =
        "<< /Type /Page /Parent 2 0 R /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>";

    fn one_page(content: Vec<u8>, dictionary: &str, font: &str, map: &str) -> Vec<u8> {
        pdf(&[
            ("<< /Type /Catalog /Pages 2 0 R >>", None),
            ("<< /Type /Pages /Kids [3 0 R] /Count 1 >>", None),
            (PAGE, None),
            (dictionary, Some(content)),
            (font, None),
            ("<< >>", Some(map.as_bytes().to_vec())),
        ])
    }

    #[test]
    fn text_of_simple_fonts_is_read_with_its_lines() {
        let content = b"BT /F1 12 Tf 72 700 Td (Hello, \\(wide\\) w\\157rld) Tj 0 -14 Td [(sec)20(ond)-400(line)] TJ \
            T* <63 61 66 e9> Tj ET BI /W 1 ID xx(not text) Tj EI BT (\\223quoted\\224) ' ET";
        let file = one_page(content.to_vec(), "<< >>", "<< /Type /Font /Subtype /Type1 >>", "");
        insta::assert_snapshot!(read(&file).unwrap(), @"
        Hello, (wide) context
        second line
        café
        “quoted”
        ");
    }

    #[test]
    fn deflated_text_of_composite_fonts_is_read_by_their_own_table() {
        let content = deflated(b"BT /F1 9 Tf <000100020003> Tj ET");
        let font = "<< /Type /Font /Subtype /Type0 /Encoding /Identity-H /ToUnicode 6 0 R >>";
        let map = "1 begincodespacerange <0000> <ffff> endcodespacerange 1 beginbfchar <0001> <00480069> \
            endbfchar 1 beginbfrange <0002> <0003> <0021> endbfrange";
        let file = one_page(content, "<< /Filter /FlateDecode >>", font, map);
        assert_eq!(read(&file).unwrap(), "Hi!\"");
    }

    #[test]
    fn objects_in_object_streams_are_found() {
        let (tree, page) =
            ("<< /Type /Pages /Kids [8 0 R] >>", "<< /Type /Page /Contents 2 0 R >>");
        let head = format!("7 0 8 {} ", tree.len());
        let packed = deflated(format!("{head}{tree}{page}").as_bytes());
        let dictionary =
            format!("<< /Type /ObjStm /N 2 /First {} /Filter [/FlateDecode] >>", head.len());
        let file = pdf(&[
            ("<< /Type /Catalog /Pages 7 0 R >>", None),
            ("<< >>", Some(b"BT (packed) Tj ET".to_vec())),
            (&dictionary, Some(packed)),
        ]);
        assert_eq!(read(&file).unwrap(), "packed");
    }

    #[test]
    fn what_has_no_text_says_why() {
        let file = one_page(b"0 0 10 10 re f".to_vec(), "<< >>", "<< >>", "");
        assert_eq!(
            read(&file).unwrap_err(),
            "it is a PDF of 1 pages without text; perhaps they are pictures"
        );
        assert!(read(b"%PDF-1.4").unwrap_err().contains("no page"));
        let mut locked = file;
        locked.extend_from_slice(b"trailer << /Encrypt 9 0 R >>");
        assert!(read(&locked).unwrap_err().contains("encrypted"));
    }

    #[test]
    fn circles_and_depths_come_to_an_end() {
        let nested = "[".repeat(100_000);
        let file = pdf(&[
            ("<< /Type /Catalog /Pages 2 0 R >>", None),
            ("<< /Type /Pages /Kids [2 0 R 2 0 R] /Parent 2 0 R >>", None),
            (&nested, None),
            ("4 0 R", None),
        ]);
        assert!(read(&file).is_err());
        let form = "<< /Type /XObject /Subtype /Form /Resources << /XObject << /X 4 0 R >> >> >>";
        let page = "<< /Type /Page /Contents 4 0 R /Resources << /XObject << /X 4 0 R >> >> >>";
        let content = b"/X Do /X Do /X Do BT (x) Tj ET".to_vec();
        let file = pdf(&[("<< >>", None), ("<< >>", None), (page, None), (form, Some(content))]);
        assert!(read(&file).is_ok());
    }

    /// Small files that would take hours or all memory to read to their end.
    #[test]
    fn what_is_named_again_and_again_is_read_so_often_and_no_more() {
        let page = |contents: &str| {
            format!(
                "<< /Type /Page /Contents [{contents}] /Resources << /Font << /F1 5 0 R >> >> >>"
            )
        };
        let content = [b"BT (x) Tj ET ".to_vec(), vec![b' '; 1 << 20]].concat();
        let large = pdf(&[
            (&page(&"2 0 R ".repeat(50_000)), None),
            ("<< /Filter /FlateDecode >>", Some(deflated(&content))),
        ]);
        assert!(read(&large).unwrap().len() <= 256);

        let mut trailers = one_page(b"BT (x) Tj ET".to_vec(), "<< >>", "<< >>", "");
        trailers.extend_from_slice(&b"trailer<<".repeat(100_000));
        assert_eq!(read(&trailers).unwrap(), "x");

        let ranges = "<00000000> <ffffffff> <0041> ".repeat(100_000);
        let map = format!("1 beginbfrange {ranges} endbfrange");
        let font = "<< /Type /Font /ToUnicode 6 0 R >>";
        let file = one_page(b"BT /F1 9 Tf (\\001) Tj ET".to_vec(), "<< >>", font, &map);
        assert_eq!(read(&file).unwrap(), "B");

        let many: String = (0..2_000).map(|number| format!("{} 0 R ", 10 + number)).collect();
        let tree = format!(
            "<< /Type /Pages /Kids [{many}] /Resources << {} >> >>",
            "/A /B ".repeat(20_000)
        );
        let mut objects = vec![("<< /Type /Catalog /Pages 2 0 R >>", None), (tree.as_str(), None)];
        objects.resize(9, ("<< >>", None));
        objects.resize(2_009, ("<< /Type /Page >>", None));
        assert!(read(&pdf(&objects)).unwrap_err().contains("2000 pages without text"));
    }

    proptest! {
        #[test]
        fn reading_never_panics(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            content in "[ -~\n]{0,200}", at in 0usize..400, byte: u8,
        ) {
            let _ = read(&bytes);
            let mut file = one_page(content.into_bytes(), "<< >>", "<< /ToUnicode 6 0 R >>", "<0");
            let _ = read(&file);
            let length = file.len();
            file[at % length] = byte;
            let _ = read(&file);
        }
    }
}
