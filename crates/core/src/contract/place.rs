//! Where in a JSON text a value stands, for errors that name the line.

/// One step of a path into a JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    Key(String),
    Index(usize),
}

/// The line, from 1, on which the value at a path begins; of what is not there, the line of what is around it.
pub fn line_of(text: &str, path: &[Step]) -> usize {
    let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
    reader.skip_space();
    let mut found = reader.at;
    for step in path {
        match reader.enter(step) {
            Some(at) => found = at,
            None => break,
        }
    }
    1 + text.as_bytes()[..found.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
}

struct Reader<'t> {
    bytes: &'t [u8],
    at: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Moves to the value behind a step; returns where its key or itself begins.
    fn enter(&mut self, step: &Step) -> Option<usize> {
        self.skip_space();
        let is_object = match self.peek()? {
            b'{' => true,
            b'[' => false,
            _ => return None,
        };
        self.at += 1;
        let mut index = 0;
        loop {
            self.skip_space();
            if matches!(self.peek()?, b'}' | b']') {
                return None;
            }
            let begins = self.at;
            let mut key = None;
            if is_object {
                key = Some(self.string()?);
                self.skip_space();
                // The colon.
                self.at += 1;
                self.skip_space();
            }
            let is_it = match step {
                Step::Key(name) => key.as_ref() == Some(name),
                Step::Index(wanted) => !is_object && *wanted == index,
            };
            if is_it {
                return Some(begins);
            }
            self.skip_value()?;
            self.skip_space();
            if self.peek()? == b',' {
                self.at += 1;
            }
            index += 1;
        }
    }

    /// A string, as it reads.
    fn string(&mut self) -> Option<String> {
        let from = self.at;
        self.skip_string()?;
        serde_json::from_slice(&self.bytes[from..self.at]).ok()
    }

    fn skip_string(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        self.at += 1;
        loop {
            match self.peek()? {
                b'\\' => self.at += 2,
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                _ => self.at += 1,
            }
        }
    }

    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => self.skip_string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    if depth == 0 {
                        return Some(());
                    }
                    depth -= 1;
                    self.at += 1;
                    if depth == 0 {
                        return Some(());
                    }
                }
                b',' if depth == 0 => return Some(()),
                _ => self.at += 1,
            }
        }
    }
}
