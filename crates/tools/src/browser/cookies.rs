//! Cookies that a person imports: a file in the format that browsers' extensions, `curl` and `wget` write.

use serde_json::{Value, json};

/// More cookies than any person's.
const MAX_COOKIES: usize = 5_000;
/// Marks a cookie that scripts cannot read.
const HTTP_ONLY: &str = "#HttpOnly_";

/// The cookies of a file, as the debugging protocol takes them. Each line has seven parts between tabs: domain, whether
/// it holds below it too, path, whether it needs https, when it ends, name, value.
pub fn parse_cookies(text: &str) -> Result<Vec<Value>, String> {
    let mut cookies = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let (line, http_only) = match line.strip_prefix(HTTP_ONLY) {
            Some(rest) => (rest, true),
            None => (line, false),
        };
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let parts: Vec<&str> = line.split('\t').collect();
        let [domain, _, path, secure, expires, name, value] = parts[..] else {
            return Err(format!("line {} does not have seven parts between tabs", at + 1));
        };
        let expires: f64 =
            expires.parse().map_err(|_| format!("line {}: `{expires}` is not a time", at + 1))?;
        if cookies.len() == MAX_COOKIES {
            return Err(format!("it has more than {MAX_COOKIES} cookies"));
        }
        let mut cookie = json!({
            "domain": domain, "path": path, "secure": secure.eq_ignore_ascii_case("true"),
            "name": name, "value": value.trim_end(), "httpOnly": http_only,
        });
        // Zero is for a cookie that ends with the browser.
        if expires > 0.0 {
            cookie["expires"] = expires.into();
        }
        cookies.push(cookie);
    }
    Ok(cookies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_cookies_is_read_line_by_line() {
        let text = "# Netscape HTTP Cookie File\n\n.a.example\tTRUE\t/\tTRUE\t2000000000\tid\tx=1\n\
                    #HttpOnly_b.example\tFALSE\t/in\tFALSE\t0\tkey\t\n";
        let cookies = parse_cookies(text).unwrap();
        assert_eq!(cookies.len(), 2);
        assert_eq!((&cookies[0]["value"], &cookies[0]["secure"]), (&json!("x=1"), &json!(true)));
        assert_eq!((&cookies[1]["httpOnly"], cookies[1].get("expires")), (&json!(true), None));
    }

    #[test]
    fn a_line_that_is_no_cookie_is_named() {
        assert_eq!(
            parse_cookies("a=1").unwrap_err(),
            "line 1 does not have seven parts between tabs"
        );
        let late = "a\tTRUE\t/\tTRUE\tsoon\tid\tx";
        assert_eq!(parse_cookies(late).unwrap_err(), "line 1: `soon` is not a time");
    }
}
