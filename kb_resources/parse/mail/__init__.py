"""E-mail messages: RFC 822 files and Outlook's .msg."""
