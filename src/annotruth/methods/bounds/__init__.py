"""What a network gets that knows more than the raters say."""
