//! The container's log.

use super::{Aws, CloudError, ErrorKind};
use crate::model::log::{LogLine, LogStream};

/// So many pages of streams are listed, of so many each.
const PAGES: usize = 4;
const A_PAGE: i32 = 50;

impl Aws {
    /// So many streams of a group are listed, at most.
    pub const NEWEST_STREAMS: usize = PAGES * A_PAGE as usize;

    /// The next lines of a stream, from its beginning when there is no token, and the token for those after them. `None` when the
    /// stream does not exist (yet: a container that has just started has none).
    pub async fn log_lines(
        &self,
        stream: &LogStream,
        token: Option<&str>,
    ) -> Result<Option<(Vec<LogLine>, Option<String>)>, CloudError> {
        let LogStream { group, name } = stream;
        let request = self.logs.get_log_events().log_group_name(group).log_stream_name(name).start_from_head(true);
        match request.set_next_token(token.map(str::to_owned)).send().await {
            Ok(answer) => {
                Ok(Some((answer.events().iter().map(line).collect(), answer.next_forward_token().map(str::to_owned))))
            }
            Err(error) => match CloudError::new("logs:GetLogEvents", format!("{group}/{name}"), &error) {
                error if error.kind == ErrorKind::NotFound => Ok(None),
                error => Err(error),
            },
        }
    }

    /// The last lines of a stream, oldest first.
    pub async fn last_log_lines(&self, stream: &LogStream, limit: i32) -> Result<Vec<LogLine>, CloudError> {
        Ok(self.log_lines_before(stream, None, Some(limit)).await?.0)
    }

    /// The lines of a stream before a token, or its last ones, oldest first, and the token for those before them; `None` at the
    /// beginning of the stream.
    pub async fn log_lines_before(
        &self,
        stream: &LogStream,
        token: Option<String>,
        limit: Option<i32>,
    ) -> Result<(Vec<LogLine>, Option<String>), CloudError> {
        let LogStream { group, name } = stream;
        let request = self.logs.get_log_events().log_group_name(group).log_stream_name(name).start_from_head(false);
        let answer = request.set_limit(limit).set_next_token(token.clone()).send().await;
        let answer = answer.map_err(|error| CloudError::new("logs:GetLogEvents", format!("{group}/{name}"), &error))?;
        let before = answer.next_backward_token().filter(|before| Some(*before) != token.as_deref());
        Ok((answer.events().iter().map(line).collect(), before.map(str::to_owned)))
    }

    /// The streams of a group that were written to last, newest first; four pages at most, of which other containers may have
    /// their share.
    pub async fn newest_streams(&self, group: &str) -> Result<Vec<LogStream>, CloudError> {
        let found = self.newest_streams_made(group).await?;
        Ok(found.into_iter().map(|(stream, _)| stream).collect())
    }

    /// The same, each with the moment at which it was made, in milliseconds: that is when its container began.
    pub async fn newest_streams_made(&self, group: &str) -> Result<Vec<(LogStream, Option<i64>)>, CloudError> {
        let (mut found, mut token) = (Vec::new(), None);
        for _ in 0..PAGES {
            let request = self.logs.describe_log_streams().log_group_name(group).set_next_token(token);
            let request =
                request.order_by(aws_sdk_cloudwatchlogs::types::OrderBy::LastEventTime).descending(true).limit(A_PAGE);
            let answer =
                request.send().await.map_err(|error| CloudError::new("logs:DescribeLogStreams", group, &error))?;
            found.extend(answer.log_streams().iter().filter_map(|stream| {
                let name = stream.log_stream_name()?.to_owned();
                Some((LogStream { group: group.to_owned(), name }, stream.creation_time()))
            }));
            token = answer.next_token;
            if token.is_none() {
                break;
            }
        }
        Ok(found)
    }
}

fn line(event: &aws_sdk_cloudwatchlogs::types::OutputLogEvent) -> LogLine {
    LogLine { at_ms: event.timestamp().unwrap_or_default(), text: event.message().unwrap_or_default().to_owned() }
}
