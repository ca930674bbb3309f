//! The lines of a log group in which runs report, searched by time.

use jiff::Timestamp;

use super::{Answer, Aws, CloudError};
use crate::model::log::{LogLine, LogStream};

/// A page may be empty and not the last; so many are read of one window.
const PAGES: usize = 20;

impl Aws {
    /// The lines that hold `words` as they are, of every stream whose name begins with `prefix`, between two moments.
    pub async fn lines_with(
        &self,
        group: &str,
        prefix: &str,
        words: &str,
        from: Timestamp,
        to: Timestamp,
    ) -> Answer<Vec<(LogStream, LogLine)>> {
        let (mut found, mut token) = (Vec::new(), None);
        for _ in 0..PAGES {
            let call = self.logs.filter_log_events().log_group_name(group).log_stream_name_prefix(prefix);
            let call = call.start_time(from.as_millisecond()).end_time(to.as_millisecond());
            let call = call.filter_pattern(format!("\"{words}\"")).set_next_token(token);
            let page = call.send().await.map_err(|error| CloudError::new("logs:FilterLogEvents", group, &error))?;
            found.extend(page.events.unwrap_or_default().into_iter().filter_map(|event| {
                let name = event.log_stream_name.filter(|name| name.starts_with(prefix))?;
                let line = LogLine { at_ms: event.timestamp.unwrap_or_default(), text: event.message? };
                Some((LogStream { group: group.to_owned(), name }, line))
            }));
            token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(found);
            }
        }
        // What was not read may hold the very line: half an answer would pass for a whole one.
        let what = format!("{PAGES} pages of one stretch of time were not all of it");
        Err(CloudError::local("logs:FilterLogEvents", group, what))
    }
}
