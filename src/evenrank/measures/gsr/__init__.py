"""GSR: do lists speak the gendered language that their queries suggest?"""
