-- free_pages: returns how many pages of the file are free, how many it has, and the bytes of a page.
SELECT freelist_count, page_count, page_size
  FROM pragma_freelist_count(), pragma_page_count(), pragma_page_size();
