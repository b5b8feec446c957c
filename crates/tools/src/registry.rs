//! All tools by name, in a stable order, and the checking of arguments against their schemas.
